"""Offsets of logic queues are translated at one place in the broker."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mqlake.broker

BROKER = Path(mqlake.broker.__file__).parent
TRANSLATE = {
    "answered_offset",
    "logical_offset",
    "physical_offset",
    "stretch_after",
    "stretch_at",
    "LogicQueue",
}
"""Names without which no request for a logic queue can be served."""
PLACE = {"logic_queues", "state/static_topics.py"}


def names(module: Path) -> Iterator[str]:
    """Yield the names that a module imports from other modules."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (each.name for each in node.names)


def test_no_family_translates_logic_queues() -> None:
    found = {
        module.relative_to(BROKER).as_posix()
        for module in BROKER.rglob("*.py")
        if not TRANSLATE.isdisjoint(names(module))
    }
    assert found
    assert {each for each in found if not each.startswith(tuple(PLACE))} == set()
