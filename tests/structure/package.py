"""The files of the package, and their syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
PACKAGE = SOURCE / "mqlake"


def modules() -> dict[str, Path]:
    """Return the files of the package by module."""
    found: dict[str, Path] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def place(path: Path) -> str:
    """Return the path of a file below the package."""
    return path.relative_to(PACKAGE).as_posix()


@cache
def imported_names(path: Path) -> Sequence[tuple[str, str]]:
    """Return modules, and what a file imports of them; "" for the modules themselves."""
    return [*_imported_names(path)]


def _imported_names(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that a file imports from."""
    for module, name in imported_names(path):
        whole = f"{module}.{name}"
        yield whole if whole in known else module
