"""docs/what-ends.md beside RocketMQ: what both brokers do, in one run with one client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.broker.endings.table import PAGE
from tests.peer.endings.compare import compared
from tests.peer.endings.page import page
from tests.peer.endings.record import EVENTS, differences, load, of_table, reasons
from tests.peer.java_build import JavaMissingError


def test_the_page_has_the_current_table() -> None:
    again = "python -c 'from tests.peer.endings.page import write; write()'"
    assert PAGE.read_text("utf-8") == page(), again


def test_each_cell_is_recorded() -> None:
    ours = of_table()
    assert {event: set(pieces) for event, pieces in load().items()} == {
        event: set(pieces) for event, pieces in ours.items()
    }


def test_each_difference_has_a_reason_and_nothing_else_has() -> None:
    assert reasons().keys() == differences().keys()


@pytest.mark.peer
@pytest.mark.nightly  # tests/broker/endings goes through them with mqlake's broker in each run
@pytest.mark.timeout(3600)
def test_both_brokers_go_through_all_events(tmp_path: Path) -> None:
    try:
        found = asyncio.run(compared(tmp_path, EVENTS, print))
    except* JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason.exceptions[0]}")
    assert not found.unexpected, "\n".join(found.unexpected)
