"""The prose in the source: docstrings, comments, and the words that a program prints."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tests.documents.pages import ROOT

SOURCE = ROOT / "src" / "mqlake"

_PRAGMAS = ("# noqa", "# pyright", "# type:", "# pragma")


class Text(NamedTuple):
    """A piece of prose, and the number of its first line."""

    line: int
    text: str


def modules() -> list[Path]:
    """Return the modules of the package, in order."""
    return sorted(SOURCE.rglob("*.py"))


def texts(source: str) -> Iterator[Text]:
    """Yield each piece of prose in a module: its literals of several words, and its comments."""
    yield from _literals(source)
    if "#" in source:
        yield from _comments(source)


def _literals(source: str) -> Iterator[Text]:
    """Yield docstrings, messages and help texts; `…` stands for a field of an f-string."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        text = _literal(node)
        if text is None:
            waiting.extend(ast.iter_child_nodes(node))
        elif " " in text:
            assert isinstance(node, ast.expr)
            yield Text(node.lineno, text)


def _literal(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(value) or "…" for value in node.values)
    return None


def _comments(source: str) -> Iterator[Text]:
    """Yield comments; those on consecutive lines are one text."""
    first, last = 0, 0
    block: list[str] = []
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(_PRAGMAS):
            continue
        line = token.start[0]
        if block and line != last + 1:
            yield Text(first, "\n".join(block))
            block = []
        if not block:
            first = line
        block.append(token.string.lstrip("#: "))
        last = line
    if block:
        yield Text(first, "\n".join(block))
