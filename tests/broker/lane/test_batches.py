"""A batch that a kernel puts is the same bytes and offsets as with the appender."""

from __future__ import annotations

import random
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from mqlake.dispatch.compiled import put as layout
from mqlake.dispatch.compiled import put_sent
from mqlake.dispatch.kernel import is_compiled
from mqlake.formats.host import encode_host
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.own_properties import LONGEST_SENT
from mqlake.store.append.message import MessageBatch
from mqlake.store.append.put_result import PutStatus
from mqlake.store.settings import StoreSettings
from tests.broker.send.random_sends import KEY, body_of_batch, hostile_body
from tests.store.appending import NOW, SIZE, Appending, message

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only compiled kernels put so")

SETTINGS = StoreSettings(mapped_file_size_commit_log=SIZE, max_message_size=40_000)
HOST = "10.0.0.1:54321"
BEFORE, AFTER = b"before, at least 16 bytes", b"after"
SCRATCH = 1 << 16


class Put(NamedTuple):
    """Where a batch was put: the first message, and how many they are."""

    physical_offset: int
    size: int
    queue_offset: int
    count: int


def batch_of(body: bytes, topic: str = "T", queue_id: int = 0) -> MessageBatch:
    return MessageBatch(
        topic,
        body,
        queue_id,
        sys_flag=1,
        born_timestamp=NOW - 9,
        born_host=HOST,
        reconsume_times=2,
        encoded_properties=KEY.encode(),
        longest_properties=LONGEST_SENT,
    )


def put(log: Appending, batch: MessageBatch, *, scratch: int = SCRATCH) -> Put | None:
    """Put a batch as the lane puts it; None if it is refused."""
    from mqlake.broker.lane.compiled.batches import put_batch

    numbers = np.zeros(put_sent.NUMBERS, np.int64)
    numbers[put_sent.BODY_AT], numbers[put_sent.BODY_SIZE] = len(BEFORE), len(batch.body)
    numbers[put_sent.SYS_FLAG] = batch.sys_flag
    numbers[put_sent.BORN_TIMESTAMP] = batch.born_timestamp
    numbers[put_sent.RECONSUME_TIMES] = batch.reconsume_times
    outside, queue = log.appender.outside, (batch.topic, batch.queue_id)
    route = outside.route(batch.topic)
    assert route is not None
    own, host = np.frombuffer(bytearray(route), np.uint8), encode_host(HOST)
    own[layout.QUEUE_ID_AT :][:8] = np.frombuffer(batch.queue_id.to_bytes(8), np.uint8)
    own[layout.BORN_HOST_AT :][: len(host)] = np.frombuffer(host, np.uint8)
    place = outside.place(queue)
    array, end, room_end, base, ends = outside.log_end()
    offset, data = max(int(ends[place]), 0), bytearray(BEFORE + batch.body + AFTER)
    size, count = put_batch(
        array,
        end - base,
        room_end,
        base,
        np.empty(scratch, np.uint8),
        own,
        offset,
        NOW,
        np.frombuffer(data, np.uint8),
        numbers,
    )
    if size == layout.REFUSED:
        return None
    ends[place] = offset + count
    outside.written(end + size)
    return Put(end, size, offset, count)


def put_both(log: Appending, other: Appending, batch: MessageBatch) -> bool:
    """Put a batch by the kernel, and by the appender; return whether the kernel has put it."""
    before, found, result = log.state(), put(log, batch), other.appender.put_batch(batch)
    if found is None:
        assert log.state() == before
        assert log.appender.put_batch(batch) == result
    else:
        assert result.status is PutStatus.PUT_OK
        assert found == (result.physical_offset, result.size, result.queue_offset, result.count)
    assert log.state() == other.state()
    return found is not None


def logs(*, crc: bool = True) -> tuple[Appending, Appending]:
    settings = msgspec.structs.replace(SETTINGS, enabled_append_prop_crc=crc)
    both = Appending(settings), Appending(settings)
    for log in both:
        log.put(message())  # The first one begins a file.
    return both


@pytest.mark.parametrize("crc", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_drawn_batches_are_the_same_bytes(crc: bool, seed: int) -> None:
    dice, (log, other), count = random.Random(seed), logs(crc=crc), 0
    for _ in range(150):
        topic = dice.choice(("T", "t" * 128, "grün"))
        batch = batch_of(body_of_batch(dice), topic, dice.choice((0, 7, (1 << 31) - 1)))
        count += put_both(log, other, batch)
    assert count > 120
    assert log.log.end > 3 * SIZE


@pytest.mark.parametrize("seed", range(4))
def test_hostile_batches_have_the_same_outcome(seed: int) -> None:
    dice, (log, other) = random.Random(seed), logs()
    put_so = [put_both(log, other, batch_of(hostile_body(dice))) for _ in range(400)]
    assert any(put_so)
    assert not all(put_so)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(21),
        encode_batch([(0, b"x", b"")]) + bytes(1),
        encode_batch([(0, b"x", b"a\1" + b"x" * LONGEST_SENT)]),
        encode_batch([(0, b"x", b"__CRC32#\1x\2")]),
        encode_batch([(0, b"x", b"INNER_MULTI_DISPATCH\1x\2")]),
        encode_batch([(0, b"INNER_MULTI_DISPATCH\1", b"")]),
        encode_batch([(0, b"x", KEY.encode()), (0, b"x", b"a\1b\2POP_CK\1x\2")]),
        encode_batch([(0, b"x", b"TIMER_DEL_UNIQKEY\1x\2")]),
        encode_batch([(0, b"x", b"INNER_MULTI_QUEUE_OFFSET\0017\2")]),
        encode_batch([(0, bytes(40_000), b"")]),
        encode_batch([(0, b"", b"")] * 1000),
    ],
    ids=lambda body: f"{body[:40]!r}, {len(body)} bytes",
)
def test_what_a_kernel_leaves_to_others(body: bytes) -> None:
    log, _ = logs()
    before = log.state()
    assert put(log, batch_of(body)) is None
    assert log.state() == before


def test_nothing_is_written_unless_all_fits() -> None:
    batch = batch_of(encode_batch([(0, bytes(100), KEY.encode())] * 20))
    log, other = logs()
    size = other.appender.put_batch(batch).size
    array, end, _, base, _ = log.appender.outside.log_end()
    before = bytes(array[end - base :])
    for room in (1, size // 2, size - 1):
        assert put(log, batch, scratch=room) is None
        assert bytes(array[end - base :]) == before
    assert put(log, batch, scratch=size) is not None
    assert log.state() == other.state()
    while (left := SIZE - (log.log.end - log.log.base)) >= size + 8:
        assert put(log, batch) is not None
    assert left > 0
    before = bytes(array[-left:])
    assert put(log, batch) is None
    assert bytes(array[-left:]) == before
