"""Appending many messages in one call, and batches: the same as one by one, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqlake.dispatch.kernel import is_compiled
from mqlake.dispatch.writing import packed_layout
from mqlake.formats import record, record_crc, sys_flag
from mqlake.formats.message_batch import decode_batch, encode_batch
from mqlake.store.append.appender import Appender
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutStatus
from mqlake.store.live_settings import current
from mqlake.store.settings import StoreSettings
from tests.crash.faulty import Fault, FaultyDisk
from tests.store.appending import NOW, Appending, SetClock, message

SMALL = 1 << 12


def small(**changes: Any) -> Appending:
    settings = StoreSettings(mapped_file_size_commit_log=SMALL, max_message_size=2000)
    return Appending(msgspec.structs.replace(settings, **changes))


def test_messages_are_packed_in_the_order_that_the_kernels_read() -> None:
    assert Message.__struct_fields__ == packed_layout.FIELDS


TEXTS = st.text(st.sampled_from("ab é\x01\x02𝄞"), max_size=6)
NUMBERS = st.sampled_from([0, 1, -1, 127, 128, 255, 256, -32, -33, -128, -129, 1 << 15, -(1 << 15)])
INTS = NUMBERS | st.sampled_from([(1 << 31) - 1, -(1 << 31), 1 << 31, 1 << 32])
LONGS = INTS | st.sampled_from([(1 << 63) - 1, -(1 << 63), 1 << 63, 1 << 64])
OLD = record_crc.encode(77)
PROPERTIES = st.dictionaries(
    st.sampled_from(["a", "KEYS", "INNER_NUM", "XINNER_NUM", "", "b\x01", "é", "__CRC32#", "#"]),
    TEXTS,
    max_size=20,
)
MESSAGES = st.builds(
    Message,
    topic=st.sampled_from(["T", "U", "long" * 40, "", "a/b", "\ud800", "Тема"]),
    body=st.sampled_from([b"", b"x", b"y" * 300, b"z" * 2000, b"w" * 2001, None, "text"]),
    tags=st.none() | TEXTS,
    keys=TEXTS | st.lists(TEXTS, max_size=17) | st.tuples(TEXTS, TEXTS),
    properties=st.none() | PROPERTIES,
    queue_id=st.sampled_from([0, 0, 1, 70_000, -1, 1 << 31, True]),
    flag=INTS,
    sys_flag=st.sampled_from([0, 0, 1, 4, 8, 12, 48, 128, -1, 1.5]),
    born_timestamp=LONGS,
    born_host=st.sampled_from(["", "", "1.2.3.4:5", "[::1]:6", "nowhere"]),
    reconsume_times=INTS,
    prepared_transaction_offset=LONGS,
    delay_level=LONGS,
    encoded_properties=st.none()
    | st.sampled_from([b"", b"a\x01b\x02", b"INNER_NUM\x012", b"x" * 32768, b"\xff", "text"])
    | st.sampled_from([b"a\x01b", bytes(600), b"x\0", OLD, b"a\x01b\x02" + OLD, OLD + b"a\x01#"])
    | st.sampled_from([b"x" * size for size in (32746, 32747, 32748, 32767)]),
)
USUAL = st.builds(
    Message,
    topic=st.sampled_from(["T", "U"]),
    body=st.binary(max_size=400),
    tags=st.sampled_from([None, "A"]),
    keys=st.sampled_from(["k", ("k", "l")]),
    queue_id=st.integers(0, 2),
)


@given(st.lists(MESSAGES | USUAL, min_size=1, max_size=40), st.booleans())
@example([message(body=b"x" * 900)] * 20, True)
@example([message(topic=f"T{number}") for number in range(300)], True)
@example([message(), *[message(topic="")] * 20, message()], True)
def test_every_way_to_put_does_what_plain_python_does(
    messages: list[Message], appends_crc: bool
) -> None:
    many, single, twin = (small(enabled_append_prop_crc=appends_crc) for _ in range(3))
    twin.in_python()
    expected = twin.put(*messages)
    assert many.put_many(messages) == expected
    assert single.put(*messages) == expected
    assert many.state() == single.state() == twin.state()


class HurryingClock(SetClock):
    """A millisecond passes whenever it is asked."""

    def milliseconds(self) -> int:
        self.now += 1
        return self.now


def test_store_timestamps_never_go_back_within_a_call() -> None:
    """Each file's first record is put by itself, and so are those that are large."""
    log = small()
    log.appender = Appender(log.log, log.offsets, current(log.settings), HurryingClock())

    results = log.put_many([message(body=b"x" * size) for size in (300, 2001, 900) * 12])

    times = [result.store_timestamp for result in results if result.is_ok]
    assert len(times) == 24
    assert times == sorted(times)
    assert len({*times}) > 3


def test_values_that_are_not_messages_are_refused(log: Appending) -> None:
    results = log.put_many([message(), None, 5, message(topic=["T"])] * 4)  # type: ignore[list-item]
    assert [result.is_ok for result in results] == [True, False, False, False] * 4


@pytest.fixture
def log() -> Appending:
    return small()


def test_a_read_only_store_refuses_each_message(log: Appending) -> None:
    log.appender.shut_down()
    results = log.put_many([message()] * 30)
    assert {result.status for result in results} == {PutStatus.SERVICE_NOT_AVAILABLE}
    assert log.state() == (0, {}, b"")


@pytest.mark.parametrize("fault", [Fault.FULL_FOR_EVER, Fault.INPUT_OUTPUT_FOR_EVER])
def test_a_disk_that_fails_in_between_keeps_what_was_put(fault: Fault) -> None:
    """Whatever fails when, the log holds just what was answered with PUT_OK."""
    messages = [message(body=b"x" * 500, queue_id=number % 3) for number in range(30)]
    counted = FaultyDisk(fault, at=-1)
    Appending(StoreSettings(mapped_file_size_commit_log=SMALL), counted).put_many(messages)
    for at in range(1, counted.operations + 1):
        disk = FaultyDisk(fault, at=-1)
        log = Appending(StoreSettings(mapped_file_size_commit_log=SMALL), disk)
        disk._at = at
        results = log.put_many(messages)
        disk.mend()
        taken = [result for result in results if result.is_ok]
        assert len(taken) < 30
        assert [result.queue_offset for result in taken] == [n // 3 for n in range(len(taken))]
        assert sum(log.offsets.values()) == len(taken)
        assert all(log.record(result).body == b"x" * 500 for result in taken)
        assert log.put(message())[0].is_ok


# Batches


def batch(body: bytes, **changes: Any) -> MessageBatch:
    return MessageBatch(**({"topic": "T", "body": body} | changes))


PARTS = [(1, b"one", b"a\x01b\x02"), (-2, b"", b""), (3, b"three" * 20, b"KEYS\x01k\x02")]
WITH_CRCS = [
    (0, b"__CRC32#\x01", b"a\x01b\x02" + OLD),
    (0, OLD, OLD[:-1]),
    (0, b"", b"a\x01b"),
    (0, b"x", b"a\x01" + OLD),
    (0, b"x", bytes(100)),
]


@pytest.mark.parametrize("appends_crc", [False, True])
@pytest.mark.parametrize("parts", [PARTS, WITH_CRCS])
def test_a_batch_is_its_messages_one_after_the_other(
    parts: list[tuple[int, bytes, bytes]], appends_crc: bool
) -> None:
    log, singles = (small(enabled_append_prop_crc=appends_crc) for _ in range(2))
    log.put(message(topic="B", queue_id=2))
    shared = {
        "topic": "B",
        "queue_id": 2,
        "sys_flag": sys_flag.COMPRESSED,
        "born_timestamp": NOW - 1,
        "born_host": "[::1]:9",
        "reconsume_times": 4,
    }
    result = log.appender.put_batch(batch(encode_batch(parts), **shared))
    singles.put(message(topic="B", queue_id=2))
    expected = singles.put(
        *(
            Message(flag=flag, body=body, encoded_properties=properties, **shared)
            for flag, body, properties in parts
        )
    )
    assert log.state() == singles.state()
    assert result.status is PutStatus.PUT_OK
    assert (result.physical_offset, result.queue_offset, result.count) == (
        expected[0].physical_offset,
        1,
        len(parts),
    )
    assert result.size == sum(single.size for single in expected)
    assert result.message_id == ",".join(single.message_id for single in expected)


@pytest.mark.parametrize(("longest", "is_ok"), [(32746, True), (32747, False), (32767, False)])
def test_the_properties_of_a_batch_leave_room_for_the_crc(longest: int, is_ok: bool) -> None:
    log = Appending()
    log.put(message())
    before = log.state()
    result = log.appender.put_batch(batch(encode_batch([*PARTS, (0, b"", b"x" * longest)])))
    assert result.is_ok is is_ok
    if not is_ok:
        assert result.status is PutStatus.PROPERTIES_SIZE_EXCEEDED
        assert log.state() == before


def test_a_batch_that_does_not_fit_goes_to_the_next_file_as_a_whole(log: Appending) -> None:
    log.put(message(body=b"x" * 1900), message(body=b"x" * 1000))
    end = log.log.end
    body = encode_batch([(0, b"y" * 300, b"")] * 4)
    result = log.appender.put_batch(batch(body))
    assert end < SMALL - 600
    assert result.physical_offset == SMALL
    assert log.log.read(end, SMALL - end) == record.encode_blank(SMALL - end)


def test_the_largest_batch_fills_a_file() -> None:
    log = small(max_message_size=SMALL)
    (single,) = log.put(message(body=b""))
    most = SMALL - record.FRAME_SIZE - 2 * single.size
    for size, is_ok in ((most, True), (most + 1, False)):
        result = log.appender.put_batch(batch(encode_batch([(0, b"", b""), (0, bytes(size), b"")])))
        assert result.is_ok is is_ok
    assert "do not fit" in result.reason


def test_the_records_of_a_batch_may_have_64_kib_more_than_the_longest_body() -> None:
    log = small(max_message_size=32 << 10, mapped_file_size_commit_log=1 << 20)
    (single,) = log.put(message(body=b""))
    count = (96 << 10) // single.size
    results = [
        log.appender.put_batch(batch(encode_batch([(0, b"", b"")] * each)))
        for each in (count, count + 1)
    ]
    assert [result.status for result in results] == [PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL]
    assert "send fewer messages in a batch" in results[1].reason


BAD: dict[str, Callable[[], MessageBatch]] = {
    "empty": lambda: batch(b""),
    "cut": lambda: batch(encode_batch(PARTS)[:-1]),
    "too long": lambda: batch(encode_batch(PARTS) + b"\0"),
    "too large": lambda: batch(encode_batch([(0, bytes(2000), b"")])),
    "delayed": lambda: batch(encode_batch(PARTS), encoded_properties=b"DELAY\x013\x02"),
    "half": lambda: batch(encode_batch(PARTS), sys_flag=sys_flag.TRANSACTION_PREPARED),
    "committed": lambda: batch(encode_batch(PARTS), sys_flag=sys_flag.TRANSACTION_COMMIT),
    "an inner batch": lambda: batch(encode_batch(PARTS), sys_flag=sys_flag.INNER_BATCH),
    "a wrong host": lambda: batch(encode_batch(PARTS), born_host="nowhere"),
    "a wrong queue": lambda: batch(encode_batch(PARTS), queue_id=-1),
    "a wrong time": lambda: batch(encode_batch(PARTS), born_timestamp=1 << 63),
    "a wrong topic": lambda: batch(encode_batch(PARTS), topic=""),
    "no body": lambda: batch(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_batch_is_refused_as_a_whole(log: Appending, name: str) -> None:
    log.put(message())
    before = log.state()
    result = log.appender.put_batch(BAD[name]())
    assert result.status is PutStatus.MESSAGE_ILLEGAL
    assert result.reason
    assert log.state() == before


@pytest.mark.parametrize("fault", [Fault.FULL_FOR_EVER, Fault.NO_DESCRIPTOR_FOR_EVER])
def test_a_batch_that_the_disk_refuses_changes_nothing(fault: Fault) -> None:
    disk = FaultyDisk(fault, at=-1)
    log = Appending(StoreSettings(mapped_file_size_commit_log=SMALL), disk)
    log.put(message(body=b"x" * 3900))
    before = log.state()
    disk._at = disk.operations + 1
    result = log.appender.put_batch(batch(encode_batch(PARTS)))
    assert result.status is PutStatus.CREATE_MAPPED_FILE_FAILED
    disk.mend()
    assert log.state() == before
    assert log.appender.put_batch(batch(encode_batch(PARTS))).physical_offset == SMALL


@pytest.mark.skipif(not is_compiled(), reason="only compiled kernels put many in one write call")
@pytest.mark.parametrize("fault", [Fault.INPUT_OUTPUT, Fault.SHORT_WRITE, Fault.FULL_FOR_EVER])
def test_a_write_call_that_the_disk_refuses_takes_no_queue_offset(fault: Fault) -> None:
    disk = FaultyDisk(fault, at=-1)
    log = Appending(StoreSettings(mapped_file_size_commit_log=1 << 20), disk)
    log.put(message(body=b"before"))
    before = log.state()
    # Enough for a write call.
    many = [message(body=b"%02d" % n * 500) for n in range(40)]
    disk.fail_next(fault)
    results = log.put_many(many)
    assert disk.has_failed
    if fault.for_ever:
        assert {each.status for each in results} == {PutStatus.UNKNOWN_ERROR}
        disk.mend()
        assert log.state() == before
        results = log.put_many(many)
    assert [each.queue_offset for each in results] == [*range(1, 41)]
    assert [log.record(each).body for each in results] == [each.body for each in many]
    assert log.offsets[("T", 0)] == 41


@given(st.data())
def test_mutated_batches_are_taken_as_they_are_read_or_refused_whole(data: st.DataObject) -> None:
    """Nothing but what `decode_batch` finds is put; and nothing where it finds a fault."""
    body = bytearray(encode_batch(PARTS))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, body[at] ^ 1]))
    cut = data.draw(st.just(len(body)) | st.integers(0, len(body)))
    mutated = bytes(body[:cut])
    log = small()
    log.put(message())
    before = log.state()
    result = log.appender.put_batch(batch(mutated))
    if not result.is_ok:
        assert result.status is PutStatus.MESSAGE_ILLEGAL
        assert log.state() == before
        return
    parts = list(decode_batch(mutated))
    assert result.count == len(parts) == len(result.offsets)
    for number, (offset, part) in enumerate(zip(result.offsets, parts, strict=True), 1):
        found = record.decode(log.log.place(offset).view, offset)  # type: ignore[union-attr]
        assert (found.flag, found.queue_offset) == (part.flag, number)
        assert found.body == mutated[part.body_at : part.body_at + part.body_length]
