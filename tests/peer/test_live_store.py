"""A store goes from mqlake to the real RocketMQ and back, after clean stops and after kill -9."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.formats import sys_flag
from mqlake.formats.consume_queue import parse_delay_levels
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Record
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.store.blocking import BlockingMessageStore
from tests.golden import ROOT
from tests.jobs.model import read_index_files, read_queue_files
from tests.peer import answers
from tests.peer.answers import Message, shown
from tests.peer.live_writer import put_all
from tests.peer.rocketmq_store import RocketMQ
from tests.peer.workload import DELAY_LEVELS, expected, puts

pytestmark = [pytest.mark.peer]

SETTINGS = {
    "mappedFileSizeCommitLog": 1 << 15,  # RocketMQ recovers at most 10 files, 320 KiB
    "mappedFileSizeConsumeQueue": 200,
    "maxHashSlotNum": 150,
    "maxIndexNum": 240,
    "messageDelayLevel": DELAY_LEVELS,
}
"""RocketMQ names an index file by the millisecond of its creation. One that it fills in less time
gets the name of the one before, and overwrites it: so the files are not smaller still.
"""

PUTS = 240


@pytest.mark.nightly  # below, a store goes there and back, too
def test_clean_stops(tmp_path: Path, rocketmq: RocketMQ) -> None:
    path = tmp_path / "store"
    messages = put_by_mqlake(path, 1, PUTS)
    check_derived_files(path, tmp_path / "rebuilt-1")

    messages += put_by_java(rocketmq, path, 2, messages, tmp_path / "rebuilt-2")

    check_reads(path, messages)
    messages += put_by_mqlake(path, 3, PUTS)
    check_derived_files(path, tmp_path / "rebuilt-3")
    check_reads(path, messages)

    put_by_java(rocketmq, path, 4, messages, tmp_path / "rebuilt-4")


def test_kill_9(tmp_path: Path, rocketmq: RocketMQ) -> None:
    path = tmp_path / "store"
    messages = put_and_be_killed(path, 11, PUTS)

    rocketmq.kill()  # a JVM that has run other tests recovers fast enough to fill a file in 1 ms
    rocketmq.open(path, SETTINGS)
    answers.check(rocketmq, messages)
    answers.check_rare_keys(rocketmq, messages)
    described = puts(12, PUTS)
    messages += expected(described, rocketmq.append(described))
    rocketmq.kill()

    messages += put_and_be_killed(path, 13, PUTS)
    check_reads(path, messages)

    rocketmq.open(path, SETTINGS)
    try:
        answers.check(rocketmq, messages)
        answers.check_rare_keys(rocketmq, messages)
        answers.check_times(rocketmq, messages)
    finally:
        rocketmq.shut_down()


def put_by_mqlake(path: Path, seed: int, count: int) -> list[Message]:
    described = puts(seed, count)
    with BlockingMessageStore.open(path, SETTINGS) as store:
        return expected(described, put_all(store, described))


def put_and_be_killed(path: Path, seed: int, count: int) -> list[Message]:
    command = [sys.executable, "-m", "tests.peer.live_writer", path, json.dumps(SETTINGS)]
    done = subprocess.run(
        [*command, str(seed), str(count)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (path / "abort").exists()
    return expected(puts(seed, count), json.loads(done.stdout))


def put_by_java(
    rocketmq: RocketMQ, path: Path, seed: int, before: list[Message], rebuilt: Path
) -> list[Message]:
    """Let Java find what was put before, and put more; stop it, and compare the derived files."""
    rocketmq.open(path, SETTINGS)
    try:
        answers.check(rocketmq, before)
        answers.check_keys(rocketmq, before, Dialect.V5_5)
        answers.check_times(rocketmq, before)
        described = puts(seed, PUTS)
        messages = expected(described, rocketmq.append(described))
    finally:
        rocketmq.shut_down()
    check_derived_files(path, rebuilt)
    return messages


def check_derived_files(path: Path, rebuilt: Path) -> None:
    """Compare with what `mqlake rebuild` makes of the log; there are several files of each kind."""
    levels = parse_delay_levels(DELAY_LEVELS)
    rebuild(path, LocalEngine(2), out=rebuilt, delay_levels=levels)
    queues, indexes = read_queue_files(path), read_index_files(path)
    assert queues == read_queue_files(rebuilt)
    assert indexes == read_index_files(rebuilt)
    assert len(list((path / "commitlog").iterdir())) > 4
    assert len(queues) > 2 * len({name.rpartition("/")[0] for name in queues})
    assert len(indexes) > 4


def check_reads(path: Path, messages: list[Message]) -> None:
    """Let mqlake find all messages: by queue, offset message id, key and time."""
    with BlockingMessageStore.open(path, SETTINGS) as store:
        found = {
            record.physical_offset: record
            for topic in store.topics()
            for queue_id in store.queues(topic)
            for record in read_queue(store, topic, queue_id)
        }
        for each in messages:
            record = store.by_message_id(each["offsetMsgId"])
            assert record is not None
            assert shown(record) == {name: each[name] for name in each if name != "tagsCode"}
            if sys_flag.is_indexed(each["sysFlag"]):
                for key in [each["properties"]["UNIQ_KEY"], *record.keys]:
                    assert record in store.by_key(each["topic"], key, max=1000).records
            if sys_flag.is_queued(each["sysFlag"]):
                place = each["topic"], each["queueId"], each["storeTimestamp"]
                first, last = (store.offset_by_time(*place, at) for at in ("lower", "upper"))
                assert first <= each["queueOffset"] <= last
    queued = [each for each in messages if sys_flag.is_queued(each["sysFlag"])]
    assert sorted(found) == [each["physicalOffset"] for each in queued]
    for each in queued:
        assert found[each["physicalOffset"]].message_id == each["offsetMsgId"]


def read_queue(store: BlockingMessageStore, topic: str, queue_id: int) -> Iterator[Record]:
    offset, end = store.queue(topic, queue_id)
    while offset < end:
        result = store.get(topic, queue_id, offset, 32)
        assert len(result)
        assert [each.queue_offset for each in result.records] == list(
            range(offset, result.next_offset)
        )
        yield from result.records
        offset = result.next_offset
