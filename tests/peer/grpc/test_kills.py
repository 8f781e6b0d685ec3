"""Official gRPC clients while servers are killed: short runs of `tests.peer.grpc.kills`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.peer.grpc.kills import page
from tests.peer.grpc.kills.deliveries import ReceivedBodies
from tests.peer.grpc.kills.plan import draw
from tests.peer.grpc.kills.run import Counts, Outcome, command, run
from tests.peer.grpc.kills.servers import BOTH, BROKER, PROXY, SETUPS

LANGUAGE = "node"
"""The one whose client starts soonest."""


@pytest.mark.peer
@pytest.mark.timeout(900)
@pytest.mark.parametrize("setup", SETUPS)
def test_kills_lose_no_message_and_keep_the_order(setup: str) -> None:
    outcome = run(1, setup, [LANGUAGE], kills=2)
    if not outcome.languages:
        pytest.skip(f"without the client for {LANGUAGE}")
    assert not outcome.violations, f"run it again: {command(outcome)}"
    assert outcome.kills.total() == 2
    assert outcome.languages[LANGUAGE].acknowledged > 10


def received(*bodies: str) -> ReceivedBodies:
    found = ReceivedBodies()
    for at, body in enumerate(bodies):
        found.add(at, body)
    return found


def test_what_is_repeated_is_in_order() -> None:
    found = received("a 0", "b 0", "a 1", "a 0", "a 1", "a 2", "b 0", "b 1")
    assert not found.out_of_order()
    assert found.repeated == 3
    assert found.lost(["a 2", "b 1"]) == set()


def test_gaps_and_late_messages_are_not_in_order() -> None:
    assert received("a 0", "a 2", "a 1").out_of_order() == [
        "a 2, where 1 follows",
        "a 1, where 2 follows",
    ]
    assert received("a 1").out_of_order() == ["a 1, where 0 follows"]
    assert received("a 0").lost(["a 0", "a 1"]) == {"a 1"}


def test_deliveries_of_several_clients_are_ordered_by_their_time() -> None:
    found = ReceivedBodies()
    for at, body in ((2.0, "a 1"), (1.0, "a 0"), (3.0, "a 2")):
        found.add(at, body)
    assert not found.out_of_order()


def test_a_seed_always_gives_the_same_plan() -> None:
    kinds = (BROKER, PROXY, BOTH)
    assert draw(7, 10, kinds) == draw(7, 10, kinds)
    assert draw(7, 10, kinds) != draw(8, 10, kinds)
    assert {kill.kind for kill in draw(7, 100, kinds)} == set(kinds)


def test_the_page_has_counters_and_violations(tmp_path: Path) -> None:
    path, local, cluster = tmp_path / "page.md", *SETUPS
    counts = {"node": Counts(1234, 5, 2345, 67, 2.25)}
    first = Outcome(5, local, kills=Counter({BROKER: 4}), languages=counts)
    failed = Outcome(5, cluster, ["lost"], Counter({PROXY: 2, BOTH: 3}), languages=counts)
    page.write([first, failed], path)
    text = path.read_text()
    assert "**9 kills, 1 violations**" in text
    assert "| a broker: the broker 4 | Node.js | 4 | 5 | 0.0 s |" in text
    assert "| a broker | Node.js | 1,234 | 5 | 2,345 | 67 | 2.2 s |" in text
    assert f"{command(failed)}\nlost" in text
