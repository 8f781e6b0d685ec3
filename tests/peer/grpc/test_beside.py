"""The official gRPC clients, and calls without a client, see the same of mqlake and of RocketMQ."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.peer.grpc.page import PAGE, page
from tests.peer.grpc.record import differences, load, reasons, unexpected
from tests.peer.grpc.rig import Scenario
from tests.peer.grpc.run import SCENARIOS, of_sides
from tests.peer.grpc.sides import COMPARED, MQLAKE, PROXY
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


def _compare(directory: Path, scenarios: Collection[Scenario]) -> None:
    try:
        found = asyncio.run(of_sides(directory, COMPARED, scenarios))
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    assert any(found[MQLAKE].values()), "no client can run here"
    lines = unexpected(found)
    assert not lines, "\n".join(lines)


@pytest.mark.peer
@pytest.mark.timeout(900)
def test_clients_see_the_same_of_both_sides(tmp_path: Path) -> None:
    _compare(tmp_path, [each for each in SCENARIOS.values() if not each.is_long])


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
    _compare(tmp_path, SCENARIOS.values())
