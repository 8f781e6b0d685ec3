"""Plain messages are put by a compiled function: the same bytes, results and refusals."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from mqlake.dispatch.kernel import is_compiled
from mqlake.formats import sys_flag
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.settings import StoreSettings
from tests.crash.disk import RecordedDisk
from tests.crash.trace import Write
from tests.store.appending import NOW, SIZE, Appending, message

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only compiled kernels put so")

LONG_TOPIC = "t" * 128
SETTINGS = StoreSettings(mapped_file_size_commit_log=SIZE, max_message_size=4000)

PLAIN: list[dict[str, Any]] = [
    {},
    {"body": b""},
    {"body": bytes(range(256)) * 15},
    {"topic": LONG_TOPIC},
    {"topic": "grün"},
    {"topic": SCHEDULE_TOPIC},
    {"tags": "A"},
    {"tags": "", "keys": ""},
    {"keys": "a b  c"},
    {"keys": "k" * 30_000},
    {"tags": "A", "keys": "k", "queue_id": 7},
    {"queue_id": (1 << 31) - 1},
    {"flag": -5, "reconsume_times": 3, "born_timestamp": NOW - 9},
    {"flag": -(1 << 31), "born_timestamp": -(1 << 63)},
    {"sys_flag": sys_flag.COMPRESSED | sys_flag.COMPRESSION_ZSTD},
    {"sys_flag": sys_flag.BORN_HOST_V6 | sys_flag.STORE_HOST_V6},
]
OTHERS: list[dict[str, Any]] = [
    {"keys": ["a", "b"]},
    {"tags": "grün"},
    {"keys": "kä"},
    {"keys": "a\2b"},
    {"tags": "\2"},
    {"properties": {"a": "b"}},
    {"encoded_properties": b""},
    {"encoded_properties": b"KEYS\1k"},
    {"born_host": "10.0.0.1:5"},
    {"delay_level": 3},
    {"prepared_transaction_offset": 1},
    {"sys_flag": sys_flag.TRANSACTION_PREPARED},
    {"sys_flag": sys_flag.TRANSACTION_COMMIT},
    {"sys_flag": sys_flag.INNER_BATCH},
    {"body": bytearray(b"x")},
    {"body": bytes(4001)},
    {"keys": "k" * 32_750},
    {"queue_id": -1},
    {"queue_id": 1 << 31},
    {"queue_id": 0.0},
    {"flag": 1 << 31},
    {"flag": 1.5},
    {"reconsume_times": -(1 << 31) - 1},
    {"born_timestamp": 1 << 63},
    {"topic": ""},
    {"topic": "../x"},
    {"topic": "t" * 300},
    {"topic": 5},
    {"tags": 5},
    {"keys": 5},
]


def in_python(settings: StoreSettings = SETTINGS) -> Appending:
    """Return a log to which no compiled function appends."""
    log = Appending(settings)
    log.appender.plain.put = lambda _: None  # type: ignore[method-assign]
    return log


def everything(log: Appending) -> tuple[object, ...]:
    files = [bytes(log.log.file(segment).view()) for segment in log.log.segments]
    return log.log.end, dict(log.offsets.table), files


@pytest.mark.parametrize("crc", [True, False])
def test_the_compiled_put_writes_the_same_bytes_as_the_appender(crc: bool) -> None:
    settings = msgspec.structs.replace(SETTINGS, enabled_append_prop_crc=crc)
    log, other = Appending(settings), in_python(settings)
    assert log.put(message()) == other.put(message())  # The first one begins a file.
    for changes in [*PLAIN, *PLAIN]:
        plain = log.appender.plain.put(message(**changes))
        (result,) = other.put(message(**changes))
        assert plain in (result, None), changes
        if plain is None:  # The disk must give room first.
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
    assert log.appender.plain.put(message(**changes)) is None
    assert everything(log) == before
    assert log.put(message(**changes)) == other.put(message(**changes))
    assert everything(log) == everything(other)


def test_values_that_are_not_messages_are_not_put() -> None:
    log = Appending(SETTINGS)
    log.put(message())
    assert log.appender.plain.put("text") is None  # type: ignore[arg-type]


def test_put_fields_equals_a_put_of_a_message() -> None:
    log, other = Appending(SETTINGS), in_python()
    assert log.put(message()) == other.put(message())
    (result,) = other.put(Message("T", b"x", "A", "k", queue_id=3))
    assert log.appender.plain.put_fields("T", b"x", "A", "k", 3) == result
    (result,) = other.put(Message("T", b"x"))
    assert log.appender.plain.put_fields("T", b"x", None, (), 0) == result
    assert everything(log) == everything(other)


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
    assert log.appender.plain.put(message()) is None
    log.appender.set_not_writable(None)
    assert log.appender.plain.put(message()) is not None
    log.log.close()
    assert log.appender.plain.put(message()) is None


def test_the_first_field_is_reported_last() -> None:
    disk = RecordedDisk()
    log = Appending(SETTINGS, disk)
    log.put(message())
    begun, end = len(disk.trace), log.log.end
    result = log.appender.plain.put(message(keys="k"))
    assert isinstance(result, PutResult)
    writes = [step for step in disk.trace[begun:] if isinstance(step, Write)]
    assert [(step.offset, len(step.data)) for step in writes] == [
        (end + 4, result.size - 4),
        (end, 4),
    ]


def test_the_size_is_stored_behind_a_fence() -> None:
    """The crash simulator trusts the order that is reported; this is what keeps it."""
    from numba import njit

    from mqlake.dispatch.compiled import put

    Appending(SETTINGS)
    made = njit(put.put.py_func)  # Numba shows no code that it has loaded from a cache.
    made.compile(put.put.signatures[0])
    (code,) = made.inspect_llvm().values()
    assert re.search(r"@llvm\.memcpy.*\n +fence release\n +store i32 .*\n +br label", code)
