"""Messages of a group go to one queue, the same as with RocketMQ's proxy."""

from __future__ import annotations

import pytest

from mqlake.grpc.messages import Code
from mqlake.proxy.brokers.port import Destination
from mqlake.proxy.errors import StatusError
from mqlake.proxy.sending.queue_choice import ChosenQueue, TargetChoice, consistent_hash


def test_queues_of_several_brokers_are_taken_in_turn() -> None:
    choice, target = TargetChoice(), Destination("", (("a", 2), ("b", 0), ("c", 1)))
    found = [choice.choose(target, "") for _ in range(4)]
    wanted = [ChosenQueue("a", 0), ChosenQueue("a", 1), ChosenQueue("c", 0), ChosenQueue("a", 0)]
    assert found == wanted


def test_one_more_queue_moves_few_groups_and_only_to_it() -> None:
    for value in range(-500, 500):
        before, after = consistent_hash(value, 7), consistent_hash(value, 8)
        assert after in (before, 7)
        assert 0 <= before < 7


def test_without_a_queue_that_can_be_written_the_send_is_forbidden() -> None:
    with pytest.raises(StatusError) as refused:
        TargetChoice().choose(Destination("", (("a", 0),)), "")
    assert refused.value.code is Code.FORBIDDEN
