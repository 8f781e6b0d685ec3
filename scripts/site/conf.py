"""The documentation site: `make docs` builds it offline from the repository's own pages.

The pages are those that GitHub shows, unchanged. Added are the navigation, and a reference of
every name that a public package exports, made of the docstrings.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
API = ROOT / "build" / "api"
sys.path.insert(0, str(SOURCE))

from mqlake import __version__  # noqa: E402  # the tree's, not that of an installed package

project = "mqlake"
release = __version__
copyright = "the authors of mqlake"  # noqa: A001  # Sphinx's name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/*.md",
    "docs/**/*.md",
    "examples/README.md",
    "build/api/*.md",
]
html_theme = "furo"
html_title = f"mqlake {release}"
html_copy_source = False
html_extra_path = ["index.html"]
napoleon_use_ivar = True
myst_heading_anchors = 6
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
suppress_warnings = [
    "autodoc",  # names that only type checkers import
    "docutils",  # docstrings are Markdown-like text, not reStructuredText
    "misc.highlighting_failure",
    "myst.xref_missing",  # links to directories; tests/documents checks all of them
    "ref.python",  # a name that two packages export
    "toc.not_included",
]

_HEADING = re.compile(r"^(#{2,3}) (.+)$")
_PAGE = re.compile(r"^\| \[[^]]+\]\(([^)#]+)\.md\) \|")


def navigation(index: str) -> dict[str, list[str]]:
    """Return what the side bar lists under each heading: the pages of the index, in its order.

    Args:
        index: the text of docs/README.md, in which each page is a row of a table.
    """
    found: dict[str, list[str]] = {"Documentation": ["docs/README", "docs/glossary"]}
    chapter = caption = ""
    for line in index.splitlines():
        if heading := _HEADING.match(line):
            chapter = heading[2] if heading[1] == "##" else chapter
            caption = heading[2] if heading[1] == "##" else f"{chapter}: {heading[2]}"
        elif page := _PAGE.match(line):
            name = os.path.normpath(f"docs/{page[1]}")
            below = ["docs/formats/*", "docs/formats/kafka/*"] * (name == "docs/formats/README")
            found.setdefault(caption, []).extend((name, *below))
    found["Python API"] = ["build/api/index"]
    found["Project"] = ["CONTRIBUTING", "SECURITY", "CHANGELOG"]
    return found


def exported(package: Path) -> list[str]:
    """Return the names that a package exports, in order."""
    for node in ast.walk(ast.parse((package / "__init__.py").read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_exports":
            return sorted(ast.literal_eval(node.args[1]))
    return []


def directive(package: str, name: str) -> str:
    """Return how Sphinx documents what a package exports under a name."""
    value = getattr(import_module(package), name)
    if inspect.isclass(value):
        return "autoclass"
    return "autofunction" if callable(value) else "autodata"


def write_reference(_app: Sphinx) -> None:
    """Write a page for each public package."""
    API.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for file in sorted((SOURCE / "mqlake").rglob("__init__.py")):
        found = exported(file.parent)
        if not found:
            continue
        name = ".".join(file.parent.relative_to(SOURCE).parts)
        names.append(name)
        lines = [f"# {name}", "", "```{eval-rst}", f".. automodule:: {name}", "   :no-members:", ""]
        for public in found:
            lines += [f".. {directive(name, public)}:: {name}.{public}", ""]
        (API / f"{name}.md").write_text("\n".join([*lines, "```", ""]))
    listed = "\n".join(f"- [{name}]({name}.md)" for name in names)
    tree = "\n".join(["```{toctree}", ":hidden:", *names, "```"])
    opening = "*For developers: every name that a package exports.*"
    (API / "index.md").write_text(f"# Python API\n\n{opening}\n\n{listed}\n\n{tree}\n")


def add_navigation(_app: Sphinx, page: str, text: list[str]) -> None:
    """Add the side bar to the first page."""
    if page == root_doc:
        index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
        for caption, patterns in navigation(index).items():
            tree = ["```{toctree}", ":hidden:", ":glob:", f":caption: {caption}", "", *patterns]
            text[0] += "\n" + "\n".join([*tree, "```", ""])


def setup(app: Sphinx) -> None:
    """Connect both to the build."""
    app.connect("builder-inited", write_reference)
    app.connect("source-read", add_navigation)
