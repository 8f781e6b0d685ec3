"""The checkpoint: RocketMQ's own files, each dialect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import checkpoint
from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import IndexHeader
from tests.formats.golden_log import golden
from tests.formats.strategies import LONG

DIALECTS = {"rmq5-clean": Dialect.V5_5, "rmq533-clean": Dialect.V5_3, "rmq49-clean": Dialect.V4_9}


@pytest.mark.parametrize("name", DIALECTS)
def test_real_files(name: str) -> None:
    data = (golden(name).path / "checkpoint").read_bytes()
    actual = checkpoint.decode(data)
    stated = golden(name).queries()["commitLog"]["storeCheckpoint"]

    assert actual.physic_msg_timestamp == stated["physicMsgTimestamp"]
    assert actual.logics_msg_timestamp == stated["logicsMsgTimestamp"]
    assert actual.index_msg_timestamp == stated["indexMsgTimestamp"]
    assert data == checkpoint.encode(actual, DIALECTS[name])
    assert bool(actual.logics_physical_offset) == (DIALECTS[name] is Dialect.V5_5)
    assert bool(actual.confirm_physical_offset) == (DIALECTS[name] is not Dialect.V4_9)


@given(st.builds(Checkpoint, LONG, LONG, LONG, LONG, LONG, LONG), st.sampled_from(Dialect))
def test_round_trip(fields: Checkpoint, dialect: Dialect) -> None:
    data = checkpoint.encode(fields, dialect)
    count = checkpoint.FIELD_COUNT[dialect]
    assert len(data) == checkpoint.SIZE
    assert checkpoint.decode(data) == fields[:count] + (0,) * (6 - count)


@pytest.mark.parametrize(
    ("dialect", "count"), [(Dialect.V4_9, 3), (Dialect.V5_3, 5), (Dialect.V5_5, 6)]
)
def test_each_dialect_has_its_fields(dialect: Dialect, count: int) -> None:
    fields = Checkpoint(1, 2, 3, 4, 5, 6)
    assert sum(map(bool, checkpoint.decode(checkpoint.encode(fields, dialect)))) == count


@pytest.mark.parametrize("size", [0, 24, 47])
def test_short_files_are_refused(size: int) -> None:
    with pytest.raises(FormatError):
        checkpoint.decode(bytes(size))
    assert checkpoint.decode(bytes(48)) == Checkpoint()


RESUME = checkpoint.ResumePoint(
    *(Dialect.V5_3, 1 << 40, 1 << 39, -1, 0, 20261120203016976, 1000),
    IndexHeader(1, 2, 3, 4, 5, 6),
    1 << 33,
    1 << 32,
    5,
    20261120203016971,
)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_resume_point_lies_behind_rocketmqs_fields(dialect: Dialect) -> None:
    fields = Checkpoint(1, 2, 3, 4, 5, 6)
    data = checkpoint.encode(fields, dialect, RESUME)

    assert checkpoint.decode_resume(data) == RESUME
    assert data[:48] == checkpoint.encode(fields, dialect)[:48]
    assert not data[512:].strip(b"\0")


@pytest.mark.parametrize("at", [0, 47, 48, 60, 139, 147, 155, 159, 167])
def test_a_resume_point_of_which_a_byte_is_wrong_is_none(at: int) -> None:
    data = bytearray(checkpoint.encode(Checkpoint(1), Dialect.V5_5, RESUME))
    data[at] ^= 4

    assert checkpoint.decode_resume(data) is None


@pytest.mark.parametrize("data", [b"", bytes(155), bytes(4096), b"\xff" * 4096])
def test_without_a_resume_point_there_is_none(data: bytes) -> None:
    assert checkpoint.decode_resume(data) is None


CHECKSUMMED = checkpoint.Checksummed(1 << 39, checkpoint.STILL_OPEN)


@pytest.mark.parametrize("resume", [None, RESUME])
def test_where_records_have_checksums(resume: checkpoint.ResumePoint | None) -> None:
    fields = Checkpoint(1, 2, 3, 4, 5, 6)
    data = checkpoint.encode(fields, Dialect.V5_5, resume, CHECKSUMMED)

    assert len(data) == checkpoint.SIZE
    assert not data[512:].strip(b"\0")
    assert checkpoint.decode(data) == fields
    assert checkpoint.decode_resume(data) == resume
    assert checkpoint.decode_checksummed(data) == CHECKSUMMED
    assert checkpoint.decode_checksummed(checkpoint.encode(fields, Dialect.V5_5, resume)) is None


@given(st.integers(0, 187), st.integers(1, 255))
def test_checksums_are_not_believed_once_anything_has_changed(at: int, flipped: int) -> None:
    """RocketMQ writes its fields, each time with a later time in them."""
    data = bytearray(checkpoint.encode(Checkpoint(7, 6, 5), Dialect.V5_5, RESUME, CHECKSUMMED))
    data[at] ^= flipped
    assert checkpoint.decode_checksummed(data) is None
    assert checkpoint.decode_checksummed(data[:187]) is None


def test_a_part_that_ends_before_it_starts_is_none() -> None:
    data = checkpoint.encode(Checkpoint(), checksummed=checkpoint.Checksummed(2, 1))
    assert checkpoint.decode_checksummed(data) is None
