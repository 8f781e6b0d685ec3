"""Runs of plain messages are put by a compiled function: the same bytes, results and refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mqlake.dispatch.kernel import is_compiled
from mqlake.formats import record
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from tests.crash.disk import RecordedDisk
from tests.crash.trace import Write
from tests.store.append.test_plain_puts import OTHERS, PLAIN, SETTINGS, everything
from tests.store.appending import Appending, message

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only compiled kernels put so")

MORE_PLAIN: list[dict[str, Any]] = [
    {"tags": "grün"},
    {"keys": "kä"},
    {"keys": ()},
    {"properties": {}},
    {"body": bytearray(b"x")},
]
NOT_PLAIN = [changes for changes in OTHERS if changes not in MORE_PLAIN]


def run_of(changes: dict[str, Any]) -> list[Message]:
    return [message(**changes), *[message(**{"body": b"x", **changes})] * 9]


@pytest.mark.parametrize("crc", [True, False])
@pytest.mark.parametrize("changes", [*PLAIN, *MORE_PLAIN], ids=str)
def test_runs_write_the_same_bytes_as_single_puts(changes: dict[str, Any], crc: bool) -> None:
    settings = msgspec.structs.replace(SETTINGS, enabled_append_prop_crc=crc)
    settings = msgspec.structs.replace(settings, mapped_file_size_commit_log=1 << 20)
    log, other = Appending(settings), Appending(settings)
    assert log.put(message()) == other.put(message())  # The first one begins a file.
    expected = other.put(*run_of(changes))
    assert log.appender.put_runs(run_of(changes)) == expected
    assert all(result.is_ok for result in expected)
    assert everything(log) == everything(other)


@pytest.mark.parametrize("changes", NOT_PLAIN, ids=str)
def test_other_messages_end_a_run_and_are_put_or_refused_as_ever(changes: dict[str, Any]) -> None:
    log, other = Appending(SETTINGS), Appending(SETTINGS)
    assert log.put(message()) == other.put(message())
    before = everything(log)
    assert log.appender.put_runs(run_of(changes)) == []
    assert everything(log) == before
    messages = [*run_of({}), *run_of(changes), *run_of({"tags": "A"})]
    assert log.put_many(messages) == other.put(*messages)
    assert everything(log) == everything(other)


def test_runs_of_several_queues_follow_each_other() -> None:
    messages = [
        message(topic=topic, queue_id=queue_id)
        for topic, queue_id in (("T", 0), ("T", 1), ("TU", 1), ("T", 0))
        for _ in range(9)
    ]
    log, other = Appending(SETTINGS), Appending(SETTINGS)
    assert log.put(message()) == other.put(message())
    assert log.appender.put_runs(messages) == other.put(*messages)
    assert everything(log) == everything(other)


def test_messages_of_queues_by_turns_are_left_to_the_kernels_for_many() -> None:
    log = Appending(SETTINGS)
    log.put(message())
    messages = [message(queue_id=number % 2) for number in range(20)]
    assert len(log.appender.put_runs(messages)) == 1
    assert [result.queue_offset for result in log.put_many(messages)[-2:]] == [11, 9]


def test_a_run_goes_on_in_the_next_file() -> None:
    settings = msgspec.structs.replace(SETTINGS, mapped_file_size_commit_log=4096)
    log, other = Appending(settings), Appending(settings)
    messages = [message(body=bytes(number * 13 % 900)) for number in range(300)]
    assert log.put_many(messages) == other.put(*messages)
    assert len(log.log.segments) > 3
    assert everything(log) == everything(other)


def test_more_messages_than_one_run_takes() -> None:
    settings = msgspec.structs.replace(SETTINGS, mapped_file_size_commit_log=1 << 20)
    log, other = Appending(settings), Appending(settings)
    messages = [message(keys=f"{number}") for number in range(2500)]
    assert log.put(message()) == other.put(message())
    assert log.appender.put_runs(messages) == other.put(*messages)
    assert everything(log) == everything(other)


def test_the_first_record_s_first_field_is_written_last() -> None:
    disk = RecordedDisk()
    log = Appending(SETTINGS, disk)
    log.put(message())
    begun, end = len(disk.trace), log.log.end
    results: list[PutResult] = log.appender.put_runs(run_of({}))
    size = sum(result.size for result in results)
    writes = [step for step in disk.trace[begun:] if isinstance(step, Write)]
    assert [(step.offset, len(step.data)) for step in writes] == [(end + 4, size - 4), (end, 4)]
    first = record.decode(log.log.read(end, results[0].size))
    assert (first.physical_offset, first.queue_offset) == (end, 1)
