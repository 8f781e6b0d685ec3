"""Messages are put by a compiled function: the same bytes, results and refusals."""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec
import pytest

from mqlake.dispatch.kernel import is_compiled
from mqlake.formats import record, sys_flag
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.kernels.jit import BOUNDS_CHECKED
from mqlake.store.append.appender import Appender
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.live_settings import current
from mqlake.store.settings import StoreSettings
from tests.crash.disk import RecordedDisk
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.trace import Write
from tests.store.appending import NOW, SIZE, Appending, message, optimized

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only compiled kernels put so")

LONG_TOPIC = "t" * 128
SETTINGS = StoreSettings(mapped_file_size_commit_log=SIZE, max_message_size=4000)

USUAL: list[dict[str, Any]] = [
    {},
    {"body": b""},
    {"body": bytes(range(256)) * 15},
    {"body": bytearray(b"x")},
    {"topic": LONG_TOPIC},
    {"topic": "grün"},
    {"topic": SCHEDULE_TOPIC},
    {"tags": "A"},
    {"tags": "", "keys": ""},
    {"keys": ()},
    {"keys": "a b  c"},
    {"keys": ["a", "b"]},
    {"keys": "k" * 30_000},
    {"tags": "grün", "keys": "kä"},
    {"tags": "MODEL", "keys": "DELAY"},
    {"tags": "A", "keys": "k", "queue_id": 7},
    {"queue_id": (1 << 31) - 1},
    {"flag": -5, "reconsume_times": 3, "born_timestamp": NOW - 9},
    {"flag": -(1 << 31), "born_timestamp": -(1 << 63)},
    {"sys_flag": sys_flag.COMPRESSED | sys_flag.COMPRESSION_ZSTD},
    {"sys_flag": sys_flag.BORN_HOST_V6 | sys_flag.STORE_HOST_V6},
    {"sys_flag": sys_flag.TRANSACTION_PREPARED},
    {"sys_flag": sys_flag.TRANSACTION_COMMIT, "prepared_transaction_offset": 1},
    {"properties": {}},
    {"properties": {"a": "b", "é": "ü"}, "tags": "A"},
    {"encoded_properties": b""},
    {"encoded_properties": b"KEYS\1k"},
    {"encoded_properties": b"KEYS\1k\2a\1" + b"b" * 300 + b"\2"},
    {"born_host": "10.0.0.1:5"},
    {"born_host": "[fd00::1]:5"},
]
DELAYED: list[dict[str, Any]] = [
    {"delay_level": 3},
    {"properties": {"DELAY": "3"}},
    {"encoded_properties": b"TIMER_DELIVER_MS\0015\2"},
    {"properties": {"MODEL": "x"}},
]
OTHERS: list[dict[str, Any]] = [
    {"keys": "a\2b"},
    {"tags": "\2"},
    {"sys_flag": sys_flag.INNER_BATCH},
    {"encoded_properties": b"INNER_NUM\0012\2"},
    {"encoded_properties": b"a\1b\2__CRC32#\0012\2"},
    {"encoded_properties": b"a" * 32_750},
    {"body": bytes(4001)},
    {"keys": "k" * 32_750},
    {"queue_id": -1},
    {"queue_id": 1 << 31},
    {"queue_id": 0.0},
    {"flag": 1 << 31},
    {"flag": 1.5},
    {"reconsume_times": -(1 << 31) - 1},
    {"born_timestamp": 1 << 63},
    {"born_host": "nobody"},
    {"born_host": "x" * 500},
    {"topic": ""},
    {"topic": "../x"},
    {"topic": "t" * 300},
    {"topic": 5},
    {"tags": 5},
    {"keys": 5},
]


def in_python(settings: StoreSettings = SETTINGS) -> Appending:
    """Return a log to which no compiled function appends."""
    return Appending(settings).in_python()


def put(log: Appending, what: Message, delays: int = 1) -> PutResult | None:
    """Put a message by the compiled function only."""
    return log.appender.packed.put(what, delays)


def everything(log: Appending) -> tuple[object, ...]:
    files = [bytes(log.log.file(segment).view()) for segment in log.log.segments]
    return log.log.end, dict(log.offsets), files


@pytest.mark.parametrize("store", ["127.0.0.1", "fd00::2"])
@pytest.mark.parametrize("crc", [True, False])
def test_the_compiled_put_writes_the_bytes_of_its_twin(crc: bool, store: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, enabled_append_prop_crc=crc, broker_ip1=store)
    log, other = Appending(settings), in_python(settings)
    assert log.put(message()) == other.put(message())  # The first one begins a file.
    for changes in [*USUAL, *DELAYED, *USUAL]:
        compiled = put(log, message(**changes))
        (result,) = other.put(message(**changes))
        assert compiled in (result, None), changes
        if compiled is None:  # The disk must give room first.
            assert log.log.end + result.size > log.log.base + log.log.room_end
            assert log.put(message(**changes)) == [result]
        assert everything(log) == everything(other), changes


@pytest.mark.parametrize("changes", OTHERS, ids=str)
def test_other_messages_leave_nothing_and_are_put_or_refused_as_ever(
    changes: dict[str, Any],
) -> None:
    log, other = Appending(SETTINGS), in_python()
    assert log.put(message()) == other.put(message())
    before = everything(log)
    for _ in range(2):  # The second time, what its topic and its host are is known.
        assert put(log, message(**changes)) is None
        assert everything(log) == before
    assert log.put(message(**changes)) == other.put(message(**changes))
    messages = [*run_of({}), *run_of(changes), *run_of({"tags": "A"})]
    assert log.put_many(messages) == other.put(*messages)
    assert everything(log) == everything(other)


@pytest.mark.parametrize("changes", DELAYED, ids=str)
def test_a_message_that_may_ask_for_a_delay_is_put_if_that_is_decided(
    changes: dict[str, Any],
) -> None:
    log = Appending(SETTINGS)
    log.put(message())
    before, asked = everything(log), list[Message]()

    def note(what: Message) -> PutResult:
        asked.append(what)
        return log.appender.put(what)

    assert put(log, message(**changes), 0) is None
    assert everything(log) == before
    assert len(log.appender.put_many([message(), message(**changes), message()], note)) == 3
    assert asked == [message(**changes)]
    assert put(log, message(**changes)) is not None


def test_values_that_are_not_messages_are_not_put() -> None:
    log = Appending(SETTINGS)
    log.put(message())
    assert put(log, "text") is None  # type: ignore[arg-type]


def test_files_follow_each_other_where_one_is_full() -> None:
    settings = msgspec.structs.replace(SETTINGS, mapped_file_size_commit_log=4096)
    log, other = Appending(settings), in_python(settings)
    for number in range(50):
        each = message(body=bytes(number * 13), keys=f"key-{number}")
        assert log.put(each) == other.put(each)
    assert len(log.log.segments) > 3
    assert everything(log) == everything(other)


def test_nothing_is_put_that_the_store_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Appending(SETTINGS)
    log.put(message())
    log.appender.set_not_writable("full")
    assert put(log, message()) is None
    log.appender.set_not_writable(None)
    assert put(log, message()) is not None
    log.log.close()
    assert put(log, message()) is None


def test_the_first_field_is_reported_last() -> None:
    disk = RecordedDisk()
    log = Appending(SETTINGS, disk)
    log.put(message())
    begun, end = len(disk.trace), log.log.end
    result = put(log, message(keys="k"))
    assert isinstance(result, PutResult)
    writes = [step for step in disk.trace[begun:] if isinstance(step, Write)]
    assert [(step.offset, len(step.data)) for step in writes] == [
        (end + 4, result.size - 4),
        (end, 4),
    ]


@pytest.mark.skipif(BOUNDS_CHECKED, reason="checks are between the instructions")
def test_the_size_is_stored_behind_a_fence() -> None:
    """The crash simulator trusts the order that is reported; this is what keeps it."""
    from mqlake.dispatch.compiled import put_messages

    Appending(SETTINGS)
    for code in optimized(put_messages.put_messages):
        assert re.search(r"@llvm\.memcpy.*\n(?:.*\n){0,4} +fence release\n +store i32 .*\n", code)


# Many


def run_of(changes: dict[str, Any]) -> list[Message]:
    return [message(**changes), *[message(**{"body": b"x", **changes})] * 9]


@pytest.mark.parametrize("crc", [True, False])
@pytest.mark.parametrize("changes", USUAL, ids=str)
def test_many_are_the_same_bytes_as_single_puts(changes: dict[str, Any], crc: bool) -> None:
    settings = msgspec.structs.replace(SETTINGS, enabled_append_prop_crc=crc)
    settings = msgspec.structs.replace(settings, mapped_file_size_commit_log=1 << 20)
    log, other = Appending(settings), in_python(settings)
    assert log.put(message()) == other.put(message())  # The first one begins a file.

    def alone(what: Message) -> PutResult:
        raise AssertionError(what)

    expected = other.put(*run_of(changes))
    assert log.appender.put_many(run_of(changes), alone) == expected
    assert all(result.is_ok for result in expected)
    assert everything(log) == everything(other)


@pytest.mark.parametrize("most", [1, 15, 16, 1024, 1025, 2500])
def test_any_number_of_messages_is_put(most: int) -> None:
    settings = msgspec.structs.replace(SETTINGS, mapped_file_size_commit_log=1 << 16)
    log, other = Appending(settings), in_python(settings)
    messages = [
        message(
            keys=f"{number}", topic=f"T{number % 3}", queue_id=number % 4, body=bytes(number % 99)
        )
        for number in range(most)
    ]
    assert log.put_many(messages) == other.put(*messages)
    assert everything(log) == everything(other)


def test_a_queue_that_is_removed_begins_again_with_offset_0() -> None:
    log = Appending(SETTINGS)
    log.put(message(), message(), message(topic="U"))
    log.offsets.remove("T", 0)
    results = log.put(message(topic="V"), message(), message(topic="U"), message())
    assert [result.queue_offset for result in results] == [0, 0, 1, 1]
    assert dict(log.offsets) == {("T", 0): 2, ("U", 0): 2, ("V", 0): 1}


def test_more_queues_and_hosts_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    log, other = Appending(SETTINGS), in_python()
    messages = [
        message(topic=f"T{number}", born_host=f"10.0.{number // 256}.{number % 256}:1")
        for number in range(5000)
    ]
    log.put_many(messages)
    other.put(*messages)
    assert log.put_many(messages[::7]) == other.put(*messages[::7])
    assert everything(log) == everything(other)


def test_a_file_of_the_log_is_not_held() -> None:
    """The disk has its room again as soon as it is deleted and no one reads it."""
    log = Appending(SETTINGS)
    log.put(message())
    array = log.log.array
    before = sys.getrefcount(array)
    log.put(message())
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("a_call", [1, 2])
def test_offsets_are_counted_where_the_array_of_ends_has_grown(a_call: int) -> None:
    log = Appending(SETTINGS)
    queues = range(3000)
    for expected in range(2):
        for first in range(0, len(queues), a_call):
            messages = [message(queue_id=queue) for queue in queues[first : first + a_call]]
            results = log.put_many(messages) if a_call > 1 else log.put(*messages)
            assert [result.queue_offset for result in results] == [expected] * a_call
    assert set(log.offsets.values()) == {2}


def test_the_limits_of_a_store_count_as_soon_as_they_change() -> None:
    settings = current(SETTINGS)
    log = Appending(SETTINGS)
    log.appender = Appender(log.log, log.offsets, settings, log.clock)
    log.put(message())
    assert put(log, message(body=bytes(3000))) is not None
    settings.replace(msgspec.structs.replace(SETTINGS, max_message_size=2000))
    assert put(log, message(body=bytes(3000))) is None
    assert put(log, message(body=bytes(2000))) is not None


@pytest.mark.parametrize("size", [100, 3000])
@pytest.mark.parametrize("fault", [Fault.INPUT_OUTPUT, Fault.FULL_FOR_EVER])
def test_what_the_disk_refuses_takes_no_queue_offset(fault: Fault, size: int) -> None:
    disk = FaultyDisk(fault, at=-1)
    log = Appending(StoreSettings(mapped_file_size_commit_log=8 << 20), disk)
    log.put(message())
    before = log.state()
    disk.fail_next(fault)
    messages = [message(body=bytes(size), queue_id=number % 3) for number in range(1000)]
    results = log.put_many(messages)
    taken = [result for result in results if result.is_ok]
    assert taken or log.state() == before
    assert sum(log.offsets.values()) == 1 + len(taken)
    for queue_id in range(3):
        mine = [each for number, each in enumerate(results) if number % 3 == queue_id]
        offsets = [each.queue_offset for each in mine if each.is_ok]
        first = 1 if queue_id == 0 else 0
        assert offsets == [*range(first, first + len(offsets))]
    disk.mend()
    assert log.put(message())[0].is_ok


def test_the_first_record_s_first_field_is_written_last() -> None:
    disk = RecordedDisk()
    log = Appending(SETTINGS, disk)
    log.put(message())
    begun, end = len(disk.trace), log.log.end
    results: list[PutResult] = log.put_many(run_of({}))
    size = sum(result.size for result in results)
    writes = [step for step in disk.trace[begun:] if isinstance(step, Write)]
    assert [(step.offset, len(step.data)) for step in writes] == [(end + 4, size - 4), (end, 4)]
    first = record.decode(log.log.read(end, results[0].size))
    assert (first.physical_offset, first.queue_offset) == (end, 1)
