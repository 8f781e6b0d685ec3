"""What the real store must answer, from messages as RocketMQ's decoder shows them.

A message is a dict with the names of `tests/golden_stores/*.messages.jsonl.xz`; `RocketMQ.read`
returns the same ones.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mqlake.formats import index_file, sys_flag
from mqlake.formats.dialect import Dialect
from mqlake.formats.java_string import index_key_hash
from mqlake.formats.record import Record
from tests.peer.rocketmq_store import RocketMQ
from tests.store.record_crcs import without_crc
from tests.until import PATIENCE

Message = dict[str, Any]

FIELDS = (
    "topic",
    "queueId",
    "queueOffset",
    "physicalOffset",
    "size",
    "flag",
    "sysFlag",
    "bornTimestamp",
    "bornHost",
    "storeTimestamp",
    "storeHost",
    "reconsumeTimes",
    "preparedTransactionOffset",
    "properties",
    "tagsCode",
    "offsetMsgId",
    "bodySha1",
)
MOST_FOUND = 64


def shown(record: Record) -> Message:
    """Return a record of mqlake's as such a message, but for its size and tags code."""
    return {
        "topic": record.topic,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "physicalOffset": record.physical_offset,
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "bornTimestamp": record.born_timestamp,
        "bornHost": f"/{record.born_host}",
        "storeTimestamp": record.store_timestamp,
        "storeHost": f"/{record.store_host}",
        "reconsumeTimes": record.reconsume_times,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "properties": without_crc(record.properties),
        "offsetMsgId": record.message_id,
        "bodySha1": hashlib.sha1(record.body).hexdigest(),
    }


def check_times(rocketmq: RocketMQ, messages: Iterable[Message]) -> None:
    """Ask each queue for the store time of each of its messages: the first and last of that ms."""
    times: dict[tuple[str, int, int], list[int]] = {}
    for each in messages:
        if sys_flag.is_queued(each["sysFlag"]):
            place = each["topic"], each["queueId"], each["storeTimestamp"]
            times.setdefault(place, []).append(each["queueOffset"])
    for boundary, end in (("LOWER", min), ("UPPER", max)):
        found = rocketmq.by_time([(*place, boundary) for place in times])
        assert found == [end(offsets) for offsets in times.values()]


def check(rocketmq: RocketMQ, messages: list[Message]) -> None:
    """Ask the open store for every message, by queue and by offset message id."""
    queued = [each for each in messages if sys_flag.is_queued(each["sysFlag"])]
    known = [field for field in FIELDS if all(field in each for each in messages)]
    assert by_offset(rocketmq.read(), known) == by_offset(queued, known)
    ids = [each["offsetMsgId"] for each in messages]
    assert rocketmq.by_message_id(ids) == ids


def check_keys(rocketmq: RocketMQ, messages: Iterable[Message], dialect: Dialect) -> None:
    """Ask for each key: RocketMQ finds the newest 64 messages that have one of the same hash.

    `dialect` is that of the store's index.
    """
    for text, found, wanted in _ask_keys(rocketmq, messages, dialect):
        assert found == wanted[-MOST_FOUND:], text


def check_rare_keys(rocketmq: RocketMQ, messages: Iterable[Message]) -> None:
    """Ask for the keys of few messages, in a store that RocketMQ has recovered from a crash.

    Each time it does, it indexes some messages once more.
    """
    messages = list(messages)
    until = time.monotonic() + PATIENCE
    while (missed := _missed_rare_keys(rocketmq, messages)) and time.monotonic() < until:
        time.sleep(0.2)  # a message is in its queue before it is in the index
    assert missed == []


def _missed_rare_keys(rocketmq: RocketMQ, messages: list[Message]) -> list[str]:
    """Return the keys of few messages for which RocketMQ does not find exactly those."""
    rare = [
        (text, found, wanted)
        for text, found, wanted in _ask_keys(rocketmq, messages, Dialect.V5_5)
        if len(wanted) <= MOST_FOUND // 4
    ]
    assert rare
    return [text for text, found, wanted in rare if set(found) != set(wanted)]


def _ask_keys(
    rocketmq: RocketMQ, messages: Iterable[Message], dialect: Dialect
) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yield the text of each key, the physical offsets found, and those with its hash."""
    offsets: dict[int, list[int]] = {}
    questions: dict[str, tuple[str, ...]] = {}
    for each in messages:
        if sys_flag.is_indexed(each["sysFlag"]):
            for text in index_file.index_keys(each["topic"], each["properties"], dialect):
                offsets.setdefault(index_key_hash(text), []).append(each["physicalOffset"])
                questions[text] = _question(text, each["topic"])
    found = rocketmq.by_key(questions.values())
    for text, answer in zip(questions, found, strict=True):
        yield text, answer, offsets[index_key_hash(text)]


def by_offset(messages: Iterable[Message], fields: Sequence[str] = FIELDS) -> dict[int, Message]:
    """Return what is compared of messages, by physical offset."""
    return {each["physicalOffset"]: _compared(each, fields) for each in messages}


def _compared(message: Message, fields: Sequence[str]) -> Message:
    assert message.get("readAt", message["queueOffset"]) == message["queueOffset"]
    if "body" in message:
        body = base64.b64decode(message["body"])
        message = message | {"bodySha1": hashlib.sha1(body).hexdigest()}
    if "properties" in message:
        message = message | {"properties": without_crc(message["properties"])}
    return {field: message[field] for field in fields}


def _question(text: str, topic: str) -> tuple[str, ...]:
    rest = text.removeprefix(f"{topic}#")
    return (topic, rest[2:], "T") if rest.startswith("T#") else (topic, rest)
