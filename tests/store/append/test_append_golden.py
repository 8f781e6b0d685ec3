"""What RocketMQ appended, appended again: the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from mqlake.formats import record
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.record import Fault, Record
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.appender import Appender
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult
from mqlake.store.live_settings import current
from mqlake.store.log.owned_log import OwnedCommitLog, open_owned_log
from mqlake.store.log.segments import CommitLog, open_log
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.settings import StoreSettings
from tests import golden
from tests.store.appending import SetClock


class Again:
    """A log in which the same is put: an appender for each store host."""

    def __init__(self, path: Path, size: int) -> None:
        self._size = size
        self.log = open_owned_log(LocalOwnedDirectory(path), size)
        self.log.recover_to(0)
        self.clock = SetClock()
        self._offsets = QueueOffsets()
        self._appenders: dict[str, Appender] = {}

    def appender(self, one: Record) -> Appender:
        """Return what puts at the time and with the host of a record."""
        self.clock.now = one.store_timestamp
        address, _, port = one.store_host.rpartition(":")
        settings = StoreSettings(
            mapped_file_size_commit_log=self._size,
            broker_ip1=address.strip("[]"),
            listen_port=int(port),
            enabled_append_prop_crc=False,
        )
        if one.store_host not in self._appenders:
            self._appenders[one.store_host] = Appender(
                self.log, self._offsets, current(settings), self.clock
            )
        return self._appenders[one.store_host]


def records(log: CommitLog) -> Iterator[tuple[Record, bytes]]:
    """Yield each record with the bytes of its properties."""
    at = log.min_offset
    while True:
        fault, layout = log.check(at)
        place = log.place(at)
        if fault is Fault.BLANK and place:
            at = place.segment.end
        elif fault is Fault.GOOD and layout and place:
            start = layout.properties_at
            properties = bytes(place.view[start : start + layout.properties_length])
            yield record.decode(place.view, place.at), properties
            at += layout.size
        else:
            return


def message(one: Record, properties: bytes) -> Message:
    return Message(
        topic=one.topic,
        body=one.body,
        queue_id=one.queue_id,
        flag=one.flag,
        sys_flag=one.sys_flag,
        born_timestamp=one.born_timestamp,
        born_host=one.born_host,
        reconsume_times=one.reconsume_times,
        prepared_transaction_offset=one.prepared_transaction_offset,
        encoded_properties=properties,
    )


def assert_same(log: OwnedCommitLog, original: CommitLog, results: Iterable[PutResult]) -> None:
    """Compare all bytes up to the end, blank records included."""
    assert all(result.is_ok for result in results)
    assert log.end > 0
    for segment in log.segments:
        length = min(segment.end, log.end) - segment.base
        place = original.place(segment.base)
        assert place
        assert log.read(segment.base, length) == place.view[:length]


@pytest.fixture(params=golden.CLEAN)
def original(request: pytest.FixtureRequest) -> CommitLog:
    return open_log(LocalDirectory(golden.store(request.param).path))


@pytest.fixture
def copy(original: CommitLog, tmp_path: Path) -> Again:
    size = original.segment_size
    assert size
    return Again(tmp_path, size)


def batch_of(found: tuple[Record, bytes]) -> object:
    """Return what the messages of a batch have in common; of another message, what it alone has."""
    one = found[0]
    if "Batch" not in one.topic:
        return one.physical_offset
    return one.topic, one.queue_id, one.store_timestamp, one.born_timestamp, one.born_host


def put_batch(copy: Again, found: list[tuple[Record, bytes]]) -> PutResult:
    one = found[0][0]
    return copy.appender(one).put_batch(
        MessageBatch(
            topic=one.topic,
            body=encode_batch((each.flag, each.body, data) for each, data in found),
            queue_id=one.queue_id,
            sys_flag=one.sys_flag,
            born_timestamp=one.born_timestamp,
            born_host=one.born_host,
            reconsume_times=one.reconsume_times,
        )
    )


def test_one_by_one_and_batch_by_batch(original: CommitLog, copy: Again) -> None:
    results: list[PutResult] = []
    batches = 0
    for _, group in groupby(records(original), batch_of):
        found = list(group)
        batches += len(found) > 1
        if len(found) > 1:
            results.append(put_batch(copy, found))
        else:
            results.append(copy.appender(found[0][0]).put(message(*found[0])))
    assert batches
    assert_same(copy.log, original, results)
    ids = [one.message_id for one, _ in records(original)]
    assert ",".join(result.message_id for result in results) == ",".join(ids)


def test_all_messages_of_one_millisecond_in_a_single_call(original: CommitLog, copy: Again) -> None:
    def moment(found: tuple[Record, bytes]) -> object:
        one = found[0]
        is_batch = "Batch" in one.topic
        return batch_of(found) if is_batch else (one.store_timestamp, one.store_host)

    results: list[PutResult] = []
    for _, group in groupby(records(original), moment):
        found = list(group)
        if "Batch" in found[0][0].topic:
            results.append(put_batch(copy, found))
        else:
            messages = [message(*each) for each in found]
            results += copy.appender(found[0][0]).put_many(messages)
    assert_same(copy.log, original, results)
