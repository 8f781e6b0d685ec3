"""The real RocketMQ opens what the Spark sink wrote, goes on, and the sink goes on after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats import sys_flag
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Record
from mqlake.store.append.message import Message
from tests.jobs.model import read_log
from tests.peer import answers
from tests.peer.rocketmq_store import RocketMQ
from tests.peer.workload import DELAY_LEVELS, DELAYS, SCHEDULED, expected, puts, to_message
from tests.spark.sink.derived_files import check_derived_files
from tests.spark.sink.writing import SMALL, to_batch, write

pytestmark = [pytest.mark.peer]

SETTINGS = {name: value for name, value in SMALL.items() if name != "messageDelayLevel"}


def shown(record: Record) -> answers.Message:
    return answers.shown(record) | {"tagsCode": _tags_code(record)}


def _tags_code(record: Record) -> int:
    if record.topic == SCHEDULED:
        return record.store_timestamp + DELAYS[int(record.properties["DELAY"]) - 1]
    return record.tags_code


def write_rows(path: Path, seed: int, count: int) -> int:
    messages = [one for one in map(to_message, puts(seed, count)) if isinstance(one, Message)]
    half = len(messages) // 2
    return write(path, [to_batch(messages[:half]), to_batch(messages[half:])], **SMALL)


def test_java_reads_every_row(tmp_path: Path, rocketmq: RocketMQ) -> None:
    path = tmp_path / "store"
    count = write_rows(path, 21, 700)
    messages = [shown(record) for record in read_log(path)]
    assert len(messages) == count

    rocketmq.open(path, SETTINGS | {"messageDelayLevel": DELAY_LEVELS})
    try:
        answers.check(rocketmq, messages)
        answers.check_keys(rocketmq, messages, Dialect.V5_5)
        answers.check_times(rocketmq, messages)
        described = puts(22, 100)
        messages += expected(described, rocketmq.append(described))
    finally:
        rocketmq.shut_down()

    write_rows(path, 23, 200)
    messages += [shown(record) for record in read_log(path)][len(messages) :]
    check_derived_files(path)
    rocketmq.open(path, SETTINGS | {"messageDelayLevel": DELAY_LEVELS})
    try:
        answers.check(rocketmq, messages)
    finally:
        rocketmq.shut_down()
    assert any(not sys_flag.is_queued(each["sysFlag"]) for each in messages)
