"""A function is short enough to be read at once."""

from __future__ import annotations

import ast

import pytest

from tests.structure.package import modules, place, tree

LINES = 60
"""At most so many lines are in one function, without its docstring."""

WHOLE = {
    "dispatch/compiled/describe.py:describe",
    "dispatch/compiled/messages.py:columns",
    "dispatch/compiled/put_messages.py:put_messages",
    "dispatch/compiled/values.py:values",
    "formats/kafka/record_batch.py:_decode_records",
}
"""Loops over all messages that calls would slow down. Remove entries; add only measured ones."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def size(function: Function, *, is_command: bool = False) -> int:
    """Return the lines of a function. The parameters of a command are a list: its options."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if is_command:
        return _lines(body[0], function) if body else 0
    docstring = _lines(function.body[0]) if body is not function.body else 0
    return _lines(function) - docstring


def _lines(first: ast.stmt, last: ast.stmt | None = None) -> int:
    return ((last or first).end_lineno or first.lineno) - first.lineno + 1


def long_functions() -> set[str]:
    """Return the functions that have too many lines."""
    return {
        f"{place(path)}:{node.name}"
        for path in modules().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if size(node, is_command=place(path).startswith("cli/commands/")) > LINES
    }


@pytest.mark.parametrize(
    ("source", "is_command", "lines"),
    [
        ("def f(): pass", False, 1),
        ("def f():\n    '''One.'''", False, 1),
        ("def f(\n    a,\n    b,\n):\n    '''One.\n\n    Two.\n    '''\n    return a\n", False, 5),
        ("def f(\n    a,\n    b,\n):\n    '''One.'''\n    a += b\n    return a\n", True, 2),
    ],
)
def test_docstrings_and_options_do_not_count(source: str, is_command: bool, lines: int) -> None:
    [function] = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert size(function, is_command=is_command) == lines


def test_functions_are_short_except_for_hot_loops() -> None:
    assert long_functions() == WHOLE
