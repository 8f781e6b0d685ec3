"""Which code a proof was made of: a long proof continues if nothing that it runs has changed."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

import grimp
from grimp import ImportGraph

_ROOT = Path(__file__).parents[1]
_FOLDERS = {"mqlake": _ROOT / "src", "tests": _ROOT}
_DIGITS = 12
_ENTRIES = ("mqlake.cli", "mqlake.console")
"""Packages through which people start what the proofs run without them; they import nearly all."""


@cache
def code_of(module: str) -> str:
    """Return a digest of a module of the tests and of all of ours that it imports, however deep.

    The command line and the console do not count.
    """
    digest = sha256()
    for name, path in sorted(sources(module).items()):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:_DIGITS]


def sources(module: str) -> dict[str, Path]:
    """Return the file of a module of the tests, and those of all of ours that it imports."""
    return {each: _source(each) for each in (module, *_imports().find_upstream_modules(module))}


@cache
def _imports() -> ImportGraph:
    graph = grimp.build_graph("mqlake", "tests")
    for entry in _ENTRIES:
        for module in (entry, *graph.find_descendants(entry)):
            graph.remove_module(module)
    return graph


def _source(module: str) -> Path:
    path = _FOLDERS[module.partition(".")[0]].joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
