"""No object sets an attribute of another one after its construction.

What an object needs comes through its constructor, and what changes it is a method of its class, so
that the class alone says in which states it can be. A module may set what its own classes declare,
except what cannot be set: the fields of named tuples and of frozen classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

import pytest

from tests.structure.package import PACKAGE, place, tree

PACKAGES = (
    "arrow", "doctor", "replica", "storage", "store", "table", "testing", "tls", "workqueue",
)  # fmt: skip
"""The packages for which this holds; `test_broker_assignments` has the broker. Add others."""

ALLOWED = {
    ("store/append/outside_puts.py", "self._log.end"),
    ("store/append/packed_puts.py", "log.end"),
}
"""Puts of compiled code: a method would add a call to each message, or to each run of sends."""


def declared(module: ast.Module) -> set[str]:
    """Return the attributes that the classes of a module declare, or set on themselves, and that
    can be set later.
    """
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and not _is_fixed(node):
            found |= {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            found |= {each.attr for each in ast.walk(node) if _is_set(each) and _is_own(each)}
    return found


def foreign(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the target of each assignment to an attribute of another class."""
    own = declared(module)
    for node in ast.walk(module):
        if not _is_set(node) or _is_own(node):
            continue
        if node.attr not in own and not node.attr.startswith("__"):
            yield node.lineno, ast.unparse(node)


def _is_fixed(node: ast.ClassDef) -> bool:
    """Return whether nothing can set the attributes of an object of a class."""
    bases = {ast.unparse(each) for each in node.bases}
    options = [*node.keywords]
    for each in node.decorator_list:
        options += each.keywords if isinstance(each, ast.Call) else []
    is_frozen = any(each.arg == "frozen" and ast.unparse(each.value) == "True" for each in options)
    return is_frozen or "NamedTuple" in bases


def _is_set(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("other.told = call", ["other.told"]),
        ("for other.number in range(3): pass", ["other.number"]),
        ("self.one.two += 1", ["self.one.two"]),
        ("first, other.second = 1, 2", ["other.second"]),
        ("with opened() as other.file: pass", ["other.file"]),
        ("self.one = cls.two = error.__cause__ = None", []),
        ("class A:\n    number: int\ndef f(a):\n    a.number += 1", []),
        ("class A(NamedTuple):\n    number: int\ndef f(a):\n    a.number += 1", ["a.number"]),
        ("class A(B, frozen=True):\n    c: int\ndef f(a):\n    a.c = 1", ["a.c"]),
        ("@dataclass(frozen=True)\nclass A:\n    c: int\ndef f(a):\n    a.c = 1", ["a.c"]),
        ("class A:\n    def __init__(self):\n        self.b = 1\ndef f(a):\n    a.b = 2", []),
    ],
)
def test_an_assignment_to_another_object_is_found(source: str, found: list[str]) -> None:
    assert [target for _, target in foreign(ast.parse(source))] == found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_object_sets_attributes_of_another_one(package: str) -> None:
    found: set[tuple[str, str]] = set()
    for path in sorted((PACKAGE / package).rglob("*.py")):
        if "compiled" not in path.parts:  # Their objects are rows of arrays.
            found |= {(place(path), target) for _, target in foreign(tree(path))}
    assert found == {each for each in ALLOWED if each[0].startswith(f"{package}/")}
