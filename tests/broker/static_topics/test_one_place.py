"""Offsets of logic queues are translated at one place in the broker."""

from __future__ import annotations

from tests.structure.package import PACKAGE, imported_names

BROKER = PACKAGE / "broker"
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


def test_no_family_translates_logic_queues() -> None:
    found = {
        module.relative_to(BROKER).as_posix()
        for module in BROKER.rglob("*.py")
        if not TRANSLATE.isdisjoint(name for _, name in imported_names(module))
    }
    assert found
    assert {each for each in found if not each.startswith(tuple(PLACE))} == set()
