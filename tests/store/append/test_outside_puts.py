"""A caller writes records itself, by a compiled function: the same bytes and offsets."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
import pytest

from mqlake.dispatch.compiled import put as layout
from mqlake.dispatch.compiled import put_sent
from mqlake.dispatch.kernel import is_compiled
from mqlake.formats import sys_flag
from mqlake.formats.host import encode_host
from mqlake.kernels.jit import BOUNDS_CHECKED
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.settings import StoreSettings
from tests.store.appending import NOW, SIZE, Appending, message, optimized

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only compiled kernels put so")

SETTINGS = StoreSettings(mapped_file_size_commit_log=SIZE, max_message_size=4000)
HOST = "10.0.0.1:54321"
PROPERTIES = b"UNIQ_KEY\1AB12\2TRACE_ON\1true\2"
BEFORE, AFTER = b"before", b"after"
MOST = (1 << 15) - 1

USUAL: list[dict[str, Any]] = [
    {},
    {"body": b""},
    {"body": bytes(range(256)) * 15},
    {"topic": "t" * 128},
    {"topic": "grün"},
    {"queue_id": 7},
    {"queue_id": (1 << 31) - 1},
    {"flag": -5, "reconsume_times": 3, "born_timestamp": NOW - 9},
    {"flag": -(1 << 31), "born_timestamp": -(1 << 63)},
    {"flag": (1 << 31) - 1, "reconsume_times": -1},
    {"sys_flag": sys_flag.COMPRESSED | sys_flag.COMPRESSION_ZSTD},
    {"sys_flag": sys_flag.BORN_HOST_V6 | sys_flag.STORE_HOST_V6},
    {"born_host": "255.255.255.255:65535"},
    {"encoded_properties": b"a\1" + b"x" * 20_000 + b"\2"},
]
OTHERS: list[dict[str, Any]] = [
    {"topic": ""},
    {"topic": "../x"},
    {"topic": "t" * 300},
    {"body": bytes(4001)},
    {"sys_flag": sys_flag.TRANSACTION_PREPARED},
    {"sys_flag": sys_flag.TRANSACTION_COMMIT},
    {"sys_flag": sys_flag.INNER_BATCH},
    {"flag": 1 << 31},
    {"reconsume_times": -(1 << 31) - 1},
    {"encoded_properties": b"a\1" + b"x" * (MOST - 2) + b"\2"},
    {"encoded_properties": b"a\1b"},
    {"encoded_properties": b""},
]


Placed = tuple[int, int, int]


def fields(changes: dict[str, Any]) -> dict[str, Any]:
    return {
        "topic": "T",
        "body": b"body",
        "queue_id": 0,
        "born_host": HOST,
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp": 0,
        "reconsume_times": 0,
        "encoded_properties": PROPERTIES,
    } | changes


def put(log: Appending, changes: dict[str, Any], **numbers: int) -> Placed | None:
    """Put a message as a kernel would have read it from a frame, with some other numbers."""
    sent = fields(changes)
    stored = bytearray(sent["encoded_properties"] + b"later")
    found = np.zeros(put_sent.NUMBERS, np.int64)
    values = {
        "BODY_AT": len(BEFORE),
        "BODY_SIZE": len(sent["body"]),
        "PROPERTIES_SIZE": len(sent["encoded_properties"]),
        "FLAG": sent["flag"],
        "SYS_FLAG": sent["sys_flag"],
        "BORN_TIMESTAMP": sent["born_timestamp"],
        "RECONSUME_TIMES": sent["reconsume_times"],
    }
    for name, value in (values | numbers).items():
        found[getattr(put_sent, name)] = value
    outside, queue = log.appender.outside, (sent["topic"], sent["queue_id"])
    if (route := outside.route(sent["topic"])) is None:
        return None
    own = np.frombuffer(bytearray(route), np.uint8)
    host = np.frombuffer(encode_host(sent["born_host"]), np.uint8)
    own[layout.QUEUE_ID_AT :][:8] = np.frombuffer(sent["queue_id"].to_bytes(8), np.uint8)
    own[layout.BORN_HOST_AT :][: len(host)] = host
    place = outside.place(queue)
    array, end, room_end, base, ends = outside.log_end()
    offset, data = max(int(ends[place]), 0), BEFORE + sent["body"] + AFTER
    size = put_sent.put_sent(
        array,
        end - base,
        room_end,
        base,
        np.empty(1 << 16, np.uint8),
        own,
        offset,
        NOW,
        np.frombuffer(bytearray(data), np.uint8),
        np.frombuffer(stored, np.uint8),
        found,
    )
    if size == layout.REFUSED:
        return None
    ends[place] = offset + 1
    outside.written(end + size)
    return end, offset, NOW


def placed(result: PutResult) -> Placed:
    assert result.status is PutStatus.PUT_OK
    return result.physical_offset, result.queue_offset, result.store_timestamp


@pytest.mark.parametrize("crc", [True, False])
def test_messages_of_clients_are_the_same_bytes_as_with_the_appender(crc: bool) -> None:
    settings = msgspec.structs.replace(SETTINGS, enabled_append_prop_crc=crc)
    log, other = Appending(settings), Appending(settings)
    assert put(log, {}) is None  # The first one begins a file.
    assert log.put(message()) == other.put(message())
    put_so = 0
    for changes in [*USUAL, *USUAL]:
        found = put(log, changes)
        (result,) = other.put(message(**fields(changes)))
        if found is None:  # The disk must give room first.
            assert log.log.end + result.size > log.log.base + log.log.room_end
            assert log.put(message(**fields(changes))) == [result]
        else:
            assert found == placed(result), changes
            put_so += 1
        assert log.state() == other.state(), changes
    assert put_so > len(USUAL)


@pytest.mark.parametrize("changes", OTHERS, ids=str)
def test_other_messages_leave_nothing(changes: dict[str, Any]) -> None:
    log = Appending(msgspec.structs.replace(SETTINGS, enabled_append_prop_crc=True))
    log.put(message())
    before = log.state()
    assert put(log, changes) is None
    assert log.state() == before
    assert put(log, {}) is not None


@pytest.mark.parametrize(
    "numbers",
    [
        {"BODY_AT": -1},
        {"BODY_AT": 1 << 40},
        {"BODY_AT": len(BEFORE + AFTER) + 1},
        {"BODY_SIZE": -1},
        {"BODY_SIZE": len(b"body" + AFTER) + 1},
        {"BODY_SIZE": 1 << 40},
        {"PROPERTIES_SIZE": 0},
        {"PROPERTIES_SIZE": -1},
        {"PROPERTIES_SIZE": 1 << 40},
        {"PROPERTIES_SIZE": len(PROPERTIES) - 1},
        {"FLAG": 1 << 31},
        {"SYS_FLAG": -(1 << 31) - 1},
    ],
    ids=str,
)
def test_wrong_numbers_leave_nothing(numbers: dict[str, int]) -> None:
    log = Appending(SETTINGS)
    log.put(message())
    before = log.state()
    assert put(log, {}, **numbers) is None
    assert log.state() == before


@pytest.mark.skipif(BOUNDS_CHECKED, reason="checks are between the instructions")
def test_the_size_is_stored_behind_a_fence() -> None:
    """As `put_messages` stores it: see test_packed_puts."""
    put(Appending(SETTINGS), {})
    for code in optimized(put_sent.put_sent):
        assert re.search(r"@llvm\.memcpy.*\n(?:.*\n){0,4} +fence release\n +store i32 .*\n", code)
