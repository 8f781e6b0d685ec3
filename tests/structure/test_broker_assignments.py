"""No module of the broker sets an attribute of another module's object after its construction.

What an object needs comes through its constructor. What changes later changes by a method with a
name, so that a reader of a class sees everything that changes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.structure.package import PACKAGE, place, tree

RECORDS = {
    "Frames",
    "PullAnswerHeader",
    "PullHeader",
    "WaitingPull",
}
"""Values that one module makes, or receives, and fills or moves on."""


def assigned(module: ast.Module) -> Iterator[str]:
    """Yield each assignment of a module to an attribute of an object of another module."""
    own = set(_defined(module))
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            types = dict(_types(function))
            for target in _targets(function):
                if _is_other(target.value, types, own):
                    yield f"{target.lineno}: {ast.unparse(target)}"


def _defined(module: ast.Module) -> Iterator[str]:
    """Yield the classes and the type variables of a module."""
    for each in module.body:
        if isinstance(each, ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Assign):
            yield from (name.id for name in each.targets if isinstance(name, ast.Name))


def _types(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the names of a function's values, and their types: "?" for what others hold."""
    parameters = function.args
    for each in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        if each.annotation is not None:
            yield each.arg, _type(each.annotation)
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, _type(node.annotation)
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            names, values = [target], [node.value]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                names, values = target.elts, node.value.elts
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and isinstance(value, ast.Attribute):
                    yield name.id, "?"


def _type(annotation: ast.expr) -> str:
    """Return the class that an annotation names."""
    while isinstance(annotation, ast.BinOp):  # `X | None`
        annotation = annotation.left
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return ast.unparse(annotation).rpartition(".")[2]


def _targets(function: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node


def _is_other(value: ast.expr, types: Mapping[str, str], own: set[str]) -> bool:
    """Return whether an object is another module's, as far as the source says."""
    if not isinstance(value, ast.Name):
        return True  # It is reached through another object.
    kind = types.get(value.id)
    return kind is not None and kind not in own | RECORDS


def test_no_object_is_changed_from_outside() -> None:
    found = [
        f"{place(path)}:{line}"
        for path in sorted((PACKAGE / "broker").rglob("*.py"))
        if "compiled" not in path.parts  # Their objects are rows of arrays.
        for line in assigned(tree(path))
    ]
    assert found == []


def test_what_counts_as_a_change_from_outside() -> None:
    source = """
class Own:
    def __init__(self, other: Other, own: Own | None, pull: WaitingPull):
        self.value = 1
        own.value = 2
        pull.seen = 3
        made = Made()
        made.value = 4
        other.value = 5
        self.state.group.term = 6
        group = self.state.group
        group.term, group.id = 7, 8
        self.queues[0].count += 9
        pull: Own = self.pull
        pull.seen = 10
"""
    assert [line.partition(": ")[2] for line in assigned(ast.parse(source))] == [
        "other.value",
        "self.state.group.term",
        "self.queues[0].count",
        "group.term",
        "group.id",
    ]
