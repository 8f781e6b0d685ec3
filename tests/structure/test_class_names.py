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

ALLOWED = {
    "Access": 2,
    "Answers": 2,
    "Candidate": 2,
    "Cluster": 2,
    "Connection": 2,
    "Counted": 2,
    "Decision": 2,
    "Derivation": 2,
    "Dispatcher": 2,
    "Finding": 2,
    "Found": 3,
    "FrameReader": 2,
    "Gap": 2,
    "Given": 2,
    "Head": 2,
    "Identity": 2,
    "KVTable": 2,
    "KeptTable": 2,
    "Kind": 6,
    "Layout": 2,
    "Limits": 2,
    "Line": 3,
    "Listener": 2,
    "LogFile": 2,
    "Members": 2,
    "Message": 2,
    "Metric": 2,
    "NameServer": 2,
    "Page": 2,
    "Part": 3,
    "Pattern": 2,
    "Plan": 2,
    "Queue": 3,
    "Rate": 2,
    "Refusal": 2,
    "RefusedError": 2,
    "Rewritten": 2,
    "Routes": 3,
    "Rules": 2,
    "Run": 3,
    "Sample": 2,
    "Served": 4,
    "State": 4,
    "Term": 2,
    "Timed": 2,
    "Times": 2,
    "Topic": 2,
    "TopicConfigs": 2,
    "TopicTables": 2,
    "Topics": 2,
    "Tracer": 2,
    "Waiting": 4,
    "Walk": 2,
}
"""How many classes have a name, if there is more than one. Remove entries; add none."""


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
    assert {name: count for name, count in found.items() if count > 1} == ALLOWED


def test_exported_names_are_needed() -> None:
    found = class_names()
    assert all(found[name] > 1 for name in EXPORTED)
