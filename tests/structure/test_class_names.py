"""The meaning of a class name does not depend on the file that it stands in."""

from __future__ import annotations

import ast
from collections import Counter

from tests.structure.package import modules, tree

EXPORTED = {
    "Batch": "`mqlake.dispatch` and `mqlake.formats.kafka`",
    "Compression": "`mqlake.client` and `mqlake.formats.kafka`",
    "Consumer": "`mqlake.client` and, for threads, `mqlake.client.blocking`",
    "Message": "`mqlake.client` and `mqlake.store`",
    "Producer": "`mqlake.client` and, for threads, `mqlake.client.blocking`",
    "Record": "`mqlake.formats` and `mqlake.formats.kafka`",
}
"""Names that two packages export: users would have to change their imports."""


def class_names() -> Counter[str]:
    """Return how many classes have each name. `_Name` counts as `Name`: both read the same."""
    return Counter(
        node.name.lstrip("_")
        for path in modules().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    )


def test_no_two_classes_have_the_same_name() -> None:
    found = class_names()
    found.subtract(EXPORTED.keys())
    assert {name: count for name, count in found.items() if count > 1} == {}


def test_exported_names_are_needed() -> None:
    found = class_names()
    assert all(found[name] > 1 for name in EXPORTED)
