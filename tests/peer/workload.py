"""Messages of every kind that a producer can make, for both stores to put.

A put is a dict with the names that `rocketmq/Append.java` reads: one message, or a batch of them
under "batch". Bodies are Base64 texts.
"""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.formats import sys_flag
from mqlake.formats.java_string import hash_code
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.properties import encode_properties
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult

Put = dict[str, Any]
Answer = dict[str, Any]

BEGIN = 1_767_225_600_000
V4, V6 = "10.1.2.3", "2001:db8:85a3:0:0:8a2e:370:7334"
TAGS = ("TagA", "TagB", "Aa", "BB", "标签", None)
TOPICS = ("TopicA", "TopicB", "TopicLong_" + "x" * 150)
SCHEDULED = "SCHEDULE_TOPIC_XXXX"
DELAY_LEVELS = "1h 2h 1d 2d"  # nothing falls due while a test runs
DELAYS = (3_600_000, 7_200_000, 86_400_000, 172_800_000)


def puts(seed: int, count: int) -> list[Put]:
    """Return so many puts, always the same for a seed; about one in eight is a batch."""
    return [_put(random.Random(seed * 1_000_003 + number), number) for number in range(count)]


def _put(rng: random.Random, number: int) -> Put:
    put: Put = {
        "topic": rng.choice(TOPICS),
        "queueId": rng.randrange(3),
        "bornTimestamp": BEGIN + number,
        "bornHost": rng.choice((V4, V4, V6)),
        "reconsumeTimes": rng.choice((0, 0, 3)),
        "sysFlag": 0,
    }
    kind = rng.randrange(16)
    if kind < 2:
        return put | {"batch": [_content(rng) for _ in range(rng.randint(1, 9))]}
    put |= _content(rng)
    if kind == 2:
        level = rng.randint(1, len(DELAYS))
        real = {"REAL_TOPIC": put["topic"], "REAL_QID": str(put["queueId"])}
        put["properties"] |= {"DELAY": str(level)} | real
        return put | {"topic": SCHEDULED, "queueId": level - 1}
    if kind == 3:
        put["sysFlag"] = sys_flag.COMPRESSED
    elif kind == 4:
        kinds = (sys_flag.TRANSACTION_PREPARED, sys_flag.TRANSACTION_ROLLBACK)
        put["sysFlag"] = rng.choice((*kinds, sys_flag.TRANSACTION_COMMIT))
        put["preparedTransactionOffset"] = rng.randrange(1 << 40)
    return put


def _content(rng: random.Random) -> Put:
    properties = {"UNIQ_KEY": f"{rng.getrandbits(128):032X}"}
    if keys := " ".join(f"key-{rng.randrange(200)}" for _ in range(rng.randint(0, 3))):
        properties["KEYS"] = keys
    if tags := rng.choice(TAGS):
        properties["TAGS"] = tags
    if rng.random() < 0.3:
        properties["own"] = f"é你{rng.randrange(1000)}"
    body = rng.randbytes(rng.choice((0, 20, 100, 700)))
    return {
        "body": base64.b64encode(body).decode(),
        "flag": rng.choice((0, 0x7FFFFFFF)),
        "properties": properties,
    }


def to_message(put: Put) -> Message | MessageBatch:
    """Return what mqlake's store is given for a put."""
    common = {
        "topic": put["topic"],
        "queue_id": put["queueId"],
        "sys_flag": put["sysFlag"],
        "born_timestamp": put["bornTimestamp"],
        "born_host": f"[{V6}]:40000" if put["bornHost"] == V6 else f"{put['bornHost']}:40000",
        "reconsume_times": put["reconsumeTimes"],
    }
    if "batch" in put:
        parts = [
            (one["flag"], _body(one), encode_properties(one["properties"])) for one in put["batch"]
        ]
        return MessageBatch(body=encode_batch(parts), **common)
    properties = dict(put["properties"])
    if put["topic"] == SCHEDULED:  # mqlake's store makes it so; a broker does for Java's
        common["topic"] = properties.pop("REAL_TOPIC")
        common["queue_id"] = int(properties.pop("REAL_QID"))
    tags, keys = properties.pop("TAGS", None), properties.pop("KEYS", "")
    return Message(
        body=_body(put),
        tags=tags,
        keys=keys,
        delay_level=int(properties.pop("DELAY", "0")),
        properties=properties,
        flag=put["flag"],
        prepared_transaction_offset=put.get("preparedTransactionOffset", 0),
        **common,
    )


def to_answer(result: PutResult) -> Answer:
    """Return mqlake's answer to a put in the words of Java's."""
    return {
        "status": str(result.status),
        "size": result.size,
        "queueOffset": result.queue_offset,
        "messageIds": result.message_id.split(","),
        "storeTimestamp": result.store_timestamp,
    }


def expected(puts: Sequence[Put], answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return the messages that puts with these answers have to have left, by physical offset.

    Each with the names of `tests.peer.answers`.
    """
    found = [
        message
        for put, answer in zip(puts, answers, strict=True)
        for message in _messages(put, answer)
    ]
    return sorted(found, key=lambda message: message["physicalOffset"])


def _messages(put: Put, answer: Answer) -> Iterator[dict[str, Any]]:
    assert answer["status"] == "PUT_OK", (put, answer)
    contents = put.get("batch", [put])
    flags = put["sysFlag"] | (sys_flag.BORN_HOST_V6 if put["bornHost"] == V6 else 0)
    for number, (one, message_id) in enumerate(zip(contents, answer["messageIds"], strict=True)):
        yield {
            "topic": put["topic"],
            "queueId": put["queueId"],
            "queueOffset": answer["queueOffset"] + number,
            "physicalOffset": int(message_id[-16:], 16),
            "flag": one["flag"],
            "sysFlag": flags,
            "bornTimestamp": put["bornTimestamp"],
            "bornHost": f"/[{V6}]:40000" if put["bornHost"] == V6 else f"/{V4}:40000",
            "storeTimestamp": answer["storeTimestamp"],
            "storeHost": "/127.0.0.1:10911",
            "reconsumeTimes": put["reconsumeTimes"],
            "preparedTransactionOffset": put.get("preparedTransactionOffset", 0),
            "properties": one["properties"],
            "tagsCode": _tags_code(put["topic"], one["properties"], answer["storeTimestamp"]),
            "offsetMsgId": message_id,
            "bodySha1": hashlib.sha1(_body(one)).hexdigest(),
        }


def _tags_code(topic: str, properties: dict[str, str], store_timestamp: int) -> int:
    if topic == SCHEDULED:
        return store_timestamp + DELAYS[int(properties["DELAY"]) - 1]
    return hash_code(properties["TAGS"]) if "TAGS" in properties else 0


def _body(one: Put) -> bytes:
    return base64.b64decode(one["body"])
