"""Nothing in the tree needs a later release of Python 3.11 than the first.

`requires-python` admits 3.11.0, and stable distributions ship early releases. Types do not show
what a later one added: this list is the difference between the standard libraries of 3.11.2 and
3.11.7, with what the documentation says of 3.11.1, 3.11.2 and of releases after 3.11.7.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

NAMES = {
    "email.policy": {"verify_generated_headers"},
    "email.utils": {"supports_strict_parsing"},
    "enum": {"pickle_by_enum_name", "pickle_by_global_name"},
    "errno": {"ENOTCAPABLE"},
    "os.path": {"ALLOW_MISSING"},
    "tarfile": {
        "AbsoluteLinkError",
        "AbsolutePathError",
        "FilterError",
        "LinkFallbackError",
        "LinkOutsideDestinationError",
        "OutsideDestinationError",
        "SpecialFileError",
        "data_filter",
        "fully_trusted_filter",
        "tar_filter",
    },
    "xml.parsers.expat": {"GetReparseDeferralEnabled", "SetReparseDeferralEnabled"},
}
"""Names by module. `getattr(module, name, default)` works everywhere, and is not found here."""

ARGUMENTS = {
    "extract": {"filter"},
    "extractall": {"filter"},
    "getaddresses": {"strict"},
    "lseek": {"whence"},
    "parseaddr": {"strict"},
    "unpack_archive": {"filter"},
}
"""Keywords by the name of the function or method."""

_FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def additions(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each use of what 3.11.0 lacks."""
    names = {name: module for module, among in NAMES.items() for name in among}
    if not any(word in source for word in (*names, *ARGUMENTS)):
        return  # Parsing takes far longer than searching.
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) if name in names:
                yield node.lineno, f"{names[name]}.{name}"
            case ast.ImportFrom(module=str(module), names=imported):
                for alias in imported:
                    if alias.name in NAMES.get(module, ()):
                        yield node.lineno, f"{module}.{alias.name}"
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=given):
                for keyword in given:
                    if keyword.arg in ARGUMENTS.get(name, ()):
                        yield node.lineno, f"{name}({keyword.arg}=…)"
            case _:
                pass


def sources() -> Iterator[tuple[Path, str]]:
    """Yield each program text of the tree, with those of the pages."""
    for folder in ("src", "tests", "examples", "benchmarks", "scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in _FENCE.findall(path.read_text(encoding="utf-8")):
            yield path, block


def test_the_first_release_of_python_3_11_suffices() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: Python 3.11.0 lacks {name}"
        for path, source in sources()
        for line, name in additions(source)
    ]
    assert not found, "\n".join(found)


def test_the_package_declares_the_release_that_is_checked() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert declared["project"]["requires-python"] == ">=3.11"
    assert declared["tool"]["pyright"]["pythonVersion"] == "3.11"


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        ("archive.extractall(path, filter='data')", "extractall(filter=…)"),
        ("shutil.unpack_archive(path, filter='data')", "unpack_archive(filter=…)"),
        ("tarfile.data_filter", "tarfile.data_filter"),
        ("from tarfile import data_filter as safe", "tarfile.data_filter"),
        ("from os.path import ALLOW_MISSING", "os.path.ALLOW_MISSING"),
        ("os.path.realpath(path, strict=os.path.ALLOW_MISSING)", "os.path.ALLOW_MISSING"),
        ("getattr(tarfile, 'data_filter', None)", None),
        ("archive.extractall(path)", None),
        ("table.scan(filter=rows)", None),
    ],
)
def test_uses_of_later_releases_are_found(source: str, lacks: str | None) -> None:
    assert [name for _, name in additions(source)] == ([] if lacks is None else [lacks])
