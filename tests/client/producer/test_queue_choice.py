"""Which queue a message goes to, on topics of many queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from mqlake.client import NoRouteError
from mqlake.client.producer.queue_choice import FAILED, QueueChoice, by_sharding_key
from mqlake.client.routes import TopicRoute
from mqlake.protocol.bodies.message_queue import MessageQueue
from tests.client.messages import route


class Counted(Sequence[MessageQueue]):
    """Queues of two brokers, by turns, that count how many are looked at."""

    def __init__(self, count: int, brokers: str) -> None:
        self._queues = [MessageQueue("t", brokers[n % len(brokers)], n) for n in range(count)]
        self.looks = 0

    def __getitem__(self, number: int) -> MessageQueue:  # type: ignore[override]
        self.looks += 1
        return self._queues[number]

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[MessageQueue]:
        for queue in self._queues:
            self.looks += 1
            yield queue


def route_of(queues: Counted) -> TopicRoute:
    return cast("TopicRoute", SimpleNamespace(topic="t", write_queues=queues))


@pytest.mark.parametrize("avoids", [False, True])
def test_a_choice_looks_at_few_of_many_queues(avoids: bool) -> None:
    queues = Counted(60_000, "ab")
    choice = QueueChoice(lambda: 0.0, avoids_slow_brokers=avoids)
    chosen = [choice.next(route_of(queues)) for _ in range(100)]
    assert len({queue.queue_id for queue in chosen}) == 100
    assert choice.next(route_of(queues), "a").broker_name == "b"
    assert queues.looks < 300


def test_the_broker_that_failed_is_chosen_if_there_is_no_other() -> None:
    choice = QueueChoice(lambda: 0.0, avoids_slow_brokers=False)
    assert choice.next(route_of(Counted(4, "a")), "a").broker_name == "a"


def test_if_all_brokers_are_avoided_the_first_to_be_back_is_chosen() -> None:
    choice = QueueChoice(lambda: 0.0, avoids_slow_brokers=True)
    choice.took("a", FAILED)
    choice.took("b", 1.0)
    assert choice.next(route_of(Counted(4, "ab"))).broker_name == "b"


def test_a_retried_send_goes_to_another_broker() -> None:
    now = 0.0
    choice = QueueChoice(lambda: now, avoids_slow_brokers=False)
    both = route(a=4, b=4)
    assert {choice.next(both, "a").broker_name for _ in range(20)} == {"b"}
    assert {choice.next(route(a=4), "a").broker_name for _ in range(20)} == {"a"}
    assert len({choice.next(both) for _ in range(8)}) == 8
    with pytest.raises(NoRouteError, match="no queue accepts messages"):
        choice.next(route(slave=1))


def test_slow_brokers_are_avoided_for_a_while() -> None:
    now = 0.0
    choice = QueueChoice(lambda: now, avoids_slow_brokers=True)
    both = route(a=1, b=1)
    choice.took("a", 0.6)
    assert {choice.next(both).broker_name for _ in range(9)} == {"b"}
    choice.took("b", 4.0)
    assert {choice.next(both).broker_name for _ in range(9)} == {"a"}
    now = 2.0
    assert {choice.next(both).broker_name for _ in range(9)} == {"a"}
    now = 6.0
    assert {choice.next(both).broker_name for _ in range(9)} == {"a", "b"}


def test_a_sharding_key_has_javas_queue() -> None:
    queues = [MessageQueue("t", "a", number) for number in range(7)]
    assert by_sharding_key(queues, "polygenelubricants").queue_id == 2**31 % 7
    assert by_sharding_key(queues, "abc").queue_id == 96354 % 7
