"""Batch consume-queue units: a file of RocketMQ's against its log."""

from __future__ import annotations

import pytest

from mqlake.errors import FormatError
from mqlake.formats import batch_consume_queue, record, sys_flag
from mqlake.formats.batch_consume_queue import UNIT_SIZE, BatchQueueUnit
from mqlake.formats.properties import INNER_BASE, INNER_NUM
from tests.formats.java_answers import content

UNITS = content("batch_consume_queue.bin")
LOG = content("inner_batches.log")


def test_units_are_what_their_records_say() -> None:
    end = 0
    for at in range(0, len(UNITS), UNIT_SIZE):
        unit = batch_consume_queue.decode(UNITS, at)
        message = record.decode(LOG, unit.physical_offset)

        assert batch_consume_queue.is_written(unit)
        assert unit == BatchQueueUnit(
            message.physical_offset,
            message.size,
            message.tags_code,
            message.store_timestamp,
            int(message.properties[INNER_BASE]),
            int(message.properties[INNER_NUM]),
            batch_consume_queue.NO_COMPACTED_OFFSET,
        )
        assert message.sys_flag & sys_flag.INNER_BATCH
        assert message.queue_offset == unit.base_offset == end
        end = unit.end_offset
    assert end == 60


@pytest.mark.parametrize(
    "change",
    [{"physical_offset": -1}, {"size": 0}, {"base_offset": -1}, {"batch_size": 0}],
)
def test_unwritten(change: dict[str, int]) -> None:
    unit = batch_consume_queue.decode(UNITS)
    assert batch_consume_queue.is_written(unit)
    assert not batch_consume_queue.is_written(unit._replace(**change))


@pytest.mark.parametrize("at", [-1, len(UNITS) - UNIT_SIZE + 1, 1 << 40])
def test_no_whole_unit(at: int) -> None:
    with pytest.raises(FormatError):
        batch_consume_queue.decode(UNITS, at)
