"""The official gRPC clients, and calls without a client, see the same of mqlake and of RocketMQ."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.peer.grpc.page import PAGE, page
from tests.peer.grpc.record import Found, differences, load, reasons, unexpected
from tests.peer.grpc.run import SCENARIOS, of_sides
from tests.peer.grpc.sides import COMPARED, JAVA, MQLAKE, PROXY
from tests.peer.java_build import JavaMissingError


def test_the_page_has_the_current_tables() -> None:
    again = "python -c 'from tests.peer.grpc.page import write; write()'"
    assert PAGE.read_text("utf-8") == page(), again


def test_each_difference_has_a_reason_and_nothing_else_has() -> None:
    assert reasons().keys() == {(cell.scenario, cell.what) for cell in differences(load())}


def test_each_scenario_is_recorded_of_both_sides() -> None:
    recorded = load()
    for side in COMPARED:
        assert recorded[side].keys() == SCENARIOS.keys()


@pytest.mark.peer
@pytest.mark.timeout(900)
def test_clients_see_of_mqlake_what_is_recorded(tmp_path: Path) -> None:
    """RocketMQ's side is as it was recorded: the nightly run has both."""
    scenarios = [each for each in SCENARIOS.values() if not each.is_long]
    found = asyncio.run(of_sides(tmp_path, (MQLAKE,), scenarios))
    _check(found | {JAVA: load()[JAVA]})


def _check(found: Found) -> None:
    assert any(found[MQLAKE].values()), "no client can run here"
    lines = unexpected(found)
    assert not lines, "\n".join(lines)


@pytest.mark.peer
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_clients_see_the_same_of_the_proxy_as_of_a_broker(tmp_path: Path) -> None:
    found = asyncio.run(of_sides(tmp_path, (MQLAKE, PROXY), SCENARIOS.values()))
    assert found[PROXY] == found[MQLAKE]


@pytest.mark.peer
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_clients_see_the_same_of_both_sides_in_all_scenarios(tmp_path: Path) -> None:
    try:
        found = asyncio.run(of_sides(tmp_path, COMPARED, SCENARIOS.values()))
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    _check(found)
