"""How consumers share queues: as RocketMQ 5.5.0's own classes did, which wrote these results."""

from __future__ import annotations

import pytest

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.strategies import (
    averagely,
    by_circle,
    by_configuration,
    by_consistent_hash,
    by_machine_room,
    by_nearest_machine_room,
)

QUEUES = [
    MessageQueue("orders", name, number) for name in ("r1@a", "r2@b", "r3@c") for number in range(5)
]
STRATEGIES = {
    "hash": by_consistent_hash(),
    "room": by_machine_room({"r1", "r2"}),
    "near": by_nearest_machine_room(
        averagely,
        lambda queue: queue.broker_name.partition("@")[0],
        lambda client: client.partition("@")[2],
    ),
}


@pytest.mark.parametrize(
    ("name", "members", "member", "wanted"),
    [
        ("hash", 1, 0, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14"),
        ("room", 1, 0, "0 1 2 3 4 5 6 7 8 9"),
        ("near", 1, 0, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14"),
        ("hash", 2, 0, "6 8 9 12"),
        ("room", 2, 0, "0 1 2 3 4"),
        ("near", 2, 0, "0 1 2 3 4 5 6 7"),
        ("hash", 2, 1, "0 1 2 3 4 5 7 10 11 13 14"),
        ("room", 2, 1, "5 6 7 8 9"),
        ("near", 2, 1, "10 11 12 13 14 8 9"),
        ("hash", 3, 0, "6 8 9 12"),
        ("room", 3, 0, "0 1 2 9"),
        ("near", 3, 0, "0 1 2 5 6"),
        ("hash", 3, 1, "2 3 4 5 7 10 13"),
        ("room", 3, 1, "3 4 5"),
        ("near", 3, 1, "10 11 12 13 14 7 8"),
        ("hash", 3, 2, "0 1 11 14"),
        ("room", 3, 2, "6 7 8"),
        ("near", 3, 2, "3 4 9"),
        ("hash", 4, 0, "6 12"),
        ("room", 4, 0, "0 1 8"),
        ("near", 4, 0, "0 1 2 5 6"),
        ("hash", 4, 1, "2 3 4 5 7 13"),
        ("room", 4, 1, "2 3 9"),
        ("near", 4, 1, "10 11 12 7"),
        ("hash", 4, 2, "0 1 14"),
        ("room", 4, 2, "4 5"),
        ("near", 4, 2, "3 4 8"),
        ("hash", 4, 3, "8 9 10 11"),
        ("room", 4, 3, "6 7"),
        ("near", 4, 3, "13 14 9"),
    ],
)
def test_strategies_share_queues_as_in_java(
    name: str, members: int, member: int, wanted: str
) -> None:
    clients = [f"10.0.0.{number}@{'r3' if number % 2 else 'r1'}" for number in range(members)]
    mine = STRATEGIES[name](clients[member], QUEUES, clients)
    assert [QUEUES.index(queue) for queue in mine] == [int(number) for number in wanted.split()]


@pytest.mark.parametrize("strategy", [averagely, by_circle, *STRATEGIES.values()])
def test_a_client_that_is_not_a_member_gets_no_queue(strategy: object) -> None:
    assert callable(strategy)
    assert strategy("somebody", QUEUES, ["10.0.0.0@r1"]) == []


def test_configured_queues_are_read_whoever_else_is_there() -> None:
    strategy = by_configuration(QUEUES[:2])
    assert strategy("anybody", QUEUES, []) == QUEUES[:2]
