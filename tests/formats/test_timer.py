"""The timer checkpoint and the timer log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import timer_checkpoint, timer_log
from mqlake.formats.timer_checkpoint import TimerCheckpoint, TimerPosition
from mqlake.formats.timer_log import UNIT, UNIT_SIZE, TimerUnit

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(st.tuples(*[LONGS] * 7), st.tuples(*[LONGS] * 4))
def test_checkpoint_comes_back(
    fields: tuple[int, int, int, int, int, int, int], position: tuple[int, int, int, int]
) -> None:
    data = timer_checkpoint.encode(TimerCheckpoint(*fields), TimerPosition(*position))
    assert len(data) == timer_checkpoint.SIZE
    assert timer_checkpoint.decode(data) == (fields, position)


def test_a_position_counts_until_rocketmq_writes() -> None:
    data = bytearray(timer_checkpoint.encode(TimerCheckpoint(5), TimerPosition(1, 2, 3, 4)))
    data[:8] = (6).to_bytes(8, "big")
    assert timer_checkpoint.decode(bytes(data)) == (TimerCheckpoint(6), None)
    assert timer_checkpoint.decode(bytes(data[:56])) == (TimerCheckpoint(6), None)


def test_too_short_a_checkpoint() -> None:
    with pytest.raises(FormatError, match="4096 bytes, but this one has 55"):
        timer_checkpoint.decode(bytes(55))


def test_units_are_chained_by_slot() -> None:
    units = [TimerUnit(2000, 10, 1), TimerUnit(3000, 20, 2, 5), TimerUnit(2000, 30, 3)]
    data = timer_log.encode(units, 1000)
    assert list(timer_log.decode(data)) == units
    assert [unit[1] for unit in UNIT.iter_unpack(data)] == [-1, -1, 0]
    assert UNIT_SIZE == 52


@given(st.binary(max_size=200))
def test_units_of_any_bytes(data: bytes) -> None:
    assert len(list(timer_log.decode(data))) <= len(data) // UNIT_SIZE
