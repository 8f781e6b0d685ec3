"""The next queue offset of each queue, whatever is added, changed and removed."""

from __future__ import annotations

import random

import pytest

from mqlake.store.queues.queue_offsets import QueueOffsets

MANY = 300
"""Queues for which the array is replaced more than once."""


def test_those_who_append_change_its_array() -> None:
    offsets = QueueOffsets()
    queues = {("T", number): number + 1 for number in range(MANY)}
    numbers = {queue: offsets.number(queue) for queue in queues}
    assert dict(offsets) == {}
    for queue, number in numbers.items():
        offsets.ends[number] = queues[queue]
    assert dict(offsets) == queues
    assert [offsets.next(*queue) for queue in queues] == list(queues.values())


@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_table_of_queues_after_any_changes(seed: int) -> None:
    dice = random.Random(seed)
    offsets, model = QueueOffsets(), dict[tuple[str, int], int]()
    for _ in range(400):
        queue = dice.choice("AB"), dice.randrange(MANY)
        match dice.randrange(4):
            case 0:
                offsets.set(*queue, dice.randrange(9))
                model[queue] = offsets.next(*queue)
            case 1:
                some = {(dice.choice("AB"), dice.randrange(MANY)): dice.randrange(9)}
                some |= {("C", number): 1 for number in range(dice.randrange(40))}
                for each, offset in some.items():
                    number = offsets.number(each)  # Before: it may replace the array.
                    offsets.ends[number] = offset
                model |= some
            case 2:
                offsets.remove(*queue)
                model.pop(queue, None)
            case _:
                assert offsets.next(*queue) == model.get(queue, 0)
        assert offsets.ends[offsets.number(("A", 0))] == model.get(("A", 0), -1)
    assert dict(offsets.items()) == dict(offsets) == model
    assert len(offsets) == len(model)
    assert offsets.topics() == sorted({topic for topic, _ in model})
