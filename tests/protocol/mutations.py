"""Frames as broken or hostile clients send them."""

from __future__ import annotations

import functools
import importlib
import json
import pkgutil
import random
import struct
import zlib
from collections.abc import Sequence

import msgspec

from mqlake.formats.config.topics import Topic
from mqlake.protocol import headers
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.bodies.route import QueueData, TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.header import Header
from tests.hostile.mutate import NAMES, NUMBERS, Field, change
from tests.protocol.messages import SEND_FIELDS, binary_header, frame, json_header, pair

LENGTHS = (Field("length", 0, 4), Field("header length", 4, 4), Field("header length", 5, 3))

KNOWN = {
    "topic": "TopicTest", "b": "TopicTest", "group": "group", "a": "group", "c": "TBW102",
    "consumerGroup": "group", "producerGroup": "group", "subscription": "*", "queueId": "0",
    "e": "0", "expressionType": "TAG", "clusterName": "DefaultCluster", "brokerName": "broker-a",
    "brokerAddr": "127.0.0.1:1", "cluster": "DefaultCluster", "brokerId": "0", "maxMsgNums": "8",
    "suspendTimeoutMillis": "10", "pollTime": "10", "timeout": "10", "commitOffset": "0",
    "d": "4", "defaultTopicQueueNums": "4", "readQueueNums": "4", "writeQueueNums": "4",
    "perm": "6", "topicFilterType": "SINGLE_TAG", "defaultTopic": "TBW102", "f": "0", "h": "0",
    "sysFlag": "0", "g": "1700000000000", "clientID": "client", "clientId": "client",
    "i": "KEYS\x01k\x02",
}  # fmt: skip
"""Values of fields that most requests need before they are looked at any closer."""

VALUES = (
    "", "0", "-1", "1", "2147483647", "-2147483648", "2147483648", "9223372036854775807",
    "-9223372036854775808", "9" * 400, "1e3", "NaN", "true", "false", "null", "*", "a || b",
    "%RETRY%", "%DLQ%group", "a > 1 AND", "((" * 200, "'", "KEYS\x01" * 500, "\x01\x02" * 100,
    "x" * 32_768, "x" * 256, "\ufffd", "\u0000", "{}", "[]", "../../x", "TBW102",
    "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer", "%RETRY%group",
    "%DLQ%group", "CID_RMQ_SYS_x",
    "DELAY\x0199\x02", "TRAN_MSG\x01true\x02PGROUP\x01group\x02", "WAIT\x01false\x02",
)  # fmt: skip


def frames(dice: random.Random, codes: Sequence[int]) -> tuple[bytes, str]:
    """Return a frame, mutated in one way or in several, and what was done."""
    kind = dice.random() < 0.2
    header, body = _header(dice, codes, binary=kind), _body(dice)
    data = bytearray(frame(header, body, int(kind)))
    if dice.random() < 0.5:
        return bytes(data), "fields only"
    near = dice.choice((len(header), len(data), 4 + len(header)))
    told = [change(dice, data, LENGTHS, b"", near) for _ in range(dice.choice((1, 1, 2, 4)))]
    return bytes(data), "; ".join(told)


def requests(dice: random.Random, codes: Sequence[int], opaque: int) -> bytes:
    """Return a frame that is one, of a request whose fields and body may be anything."""
    code = dice.choice(codes)
    body = _body(dice)
    if dice.random() < 0.3 and code < 1 << 15:
        pairs = _pairs(_fields(dice))
        header = binary_header(pairs, code)
        return frame(header[:5] + struct.pack(">i", opaque) + header[9:], body, 1)
    return frame(json_header(code, opaque=opaque, extFields=_fields(dice)), body)


@functools.cache
def field_names() -> tuple[str, ...]:
    """Return all field names of all headers that are known."""
    names: set[str] = set()
    for module in pkgutil.iter_modules(headers.__path__):
        found = importlib.import_module(f"{headers.__name__}.{module.name}")
        for kind in vars(found).values():
            if isinstance(kind, type) and issubclass(kind, Header):
                names.update(field.encode_name for field in msgspec.structs.fields(kind))
    return tuple(sorted(names))


def _fields(dice: random.Random) -> dict[str, str]:
    """Return values for all fields that any request may have; some of them hostile."""
    fields = {name: KNOWN.get(name, dice.choice(("0", "1", "8"))) for name in field_names()}
    for name in dice.sample(field_names(), dice.choice((0, 1, 2, 8, 40))):
        fields[name] = _value(dice)
    for name in dice.sample(field_names(), dice.choice((0, 0, 1, 4, 60))):
        del fields[name]
    return fields


def _value(dice: random.Random) -> str:
    way = dice.randrange(3)
    if way == 0:
        return dice.choice(VALUES)
    if way == 1:
        return dice.choice(NAMES).decode("utf-8", "replace")
    return str(dice.choice(NUMBERS) * dice.choice((1, 1, -1)))


def _pairs(fields: dict[str, str]) -> bytes:
    items = (
        (n.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for n, v in fields.items()
    )
    return b"".join(pair(name, value) for name, value in items)


def _header(dice: random.Random, codes: Sequence[int], *, binary: bool) -> bytes:
    if binary:
        fields = {name: _value(dice) for name in dice.sample(field_names(), 4)}
        return binary_header(_pairs(fields), dice.choice(codes) & 0x7FFF, dice.randrange(256))
    if dice.random() < 0.3:
        return json_header(dice.choice(codes), extFields=SEND_FIELDS | {"e": _value(dice)})
    odd = {
        "code": dice.choice((dice.choice(codes), -1, 1 << 31, "310", None, 1.5)),
        "opaque": dice.choice((0, -1, (1 << 31) - 1, 1 << 63, "x", None)),
        "flag": dice.choice((0, 1, 2, 3, -1)),
        "extFields": dice.choice((None, [], "x", {"a": None}, {"a": 1}, {"": {}}, SEND_FIELDS)),
        "remark": dice.choice((None, "", "x" * 2000, "\ud800", 7)),
        "version": dice.choice((0, 401, 513, -1, "x")),
    }
    chosen = {name: value for name, value in odd.items() if dice.random() < 0.4}
    return json_header(**({"code": dice.choice(codes)} | chosen))  # type: ignore[arg-type]


@functools.cache
def _bodies() -> tuple[bytes, ...]:
    topics = TopicConfigs({name: Topic(name, 4, 4) for name in ("TopicTest", "U")})
    registered = RegisterBody(topics)
    queue = {"topic": "TopicTest", "brokerName": "broker-a", "queueId": 0}
    subscription = {
        "topic": "TopicTest", "subString": "*", "subVersion": 1, "expressionType": "TAG",
        "tagsSet": [], "codeSet": [], "classFilterMode": False,
    }  # fmt: skip
    consumer = {
        "groupName": "group", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": [subscription],
    }  # fmt: skip
    documents = (
        {"clientID": "c", "producerDataSet": [{"groupName": "p"}], "consumerDataSet": [consumer]},
        {"consumerGroup": "group", "clientId": "c", "mqSet": [queue]},
        {"clientId": "c", "group": "group", "subscriptionData": subscription},
        {"topicName": "TopicTest", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6},
        {"groupName": "group", "consumeEnable": True, "retryQueueNums": 1},
        {"offsetTable": {"TopicTest@group": {"0": 5}}},
        {"brokerName": "broker-a", "acks": [{"c": "group", "t": "TopicTest", "r": "0", "so": 0}]},
    )
    record = struct.pack(">iiiiih", 31, 0, 0, 0, 5, 4) + b"hello" + b"A\x01b\x02"
    return (
        b"", b"{}", b"[]", b"null", b"hello", registered.encode(), registered.compress(),
        zlib.compress(bytes(50_000)), encode_body(TopicRouteData([QueueData("broker-a", 4, 4, 6)])),
        record * 3, b"maxMessageSize=100\nunknown=1\n", b"flushDiskType=x\n",
        *(json.dumps(document).encode() for document in documents),
    )  # fmt: skip


def _body(dice: random.Random) -> bytes:
    data = bytearray(dice.choice(_bodies()))
    if dice.random() < 0.4:
        for _ in range(dice.choice((1, 2, 5))):
            change(
                dice, data, [Field("number", at, 4) for at in range(0, min(len(data) - 3, 40), 4)]
            )
    if dice.random() < 0.05:
        data += dice.randbytes(dice.choice((1, 100, 5000)))
    return bytes(data)
