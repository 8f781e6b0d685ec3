"""A class is small enough to be read at once."""

from __future__ import annotations

import ast

from tests.structure.package import modules, place, tree

LINES = 350
"""At most so many lines are in one class."""

TABLES = {"broker/settings.py:BrokerSettings"}
"""Classes that are lists: a line for each setting, and few of code. They may grow."""


def large_classes() -> dict[str, int]:
    """Return the classes that have too many lines, and how many."""
    return {
        f"{place(path)}:{node.name}": size
        for path in modules().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
        for size in [(node.end_lineno or node.lineno) - node.lineno + 1]
        if size > LINES
    }


def test_classes_are_small_except_for_tables() -> None:
    assert large_classes().keys() == TABLES
