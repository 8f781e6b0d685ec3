"""What a kernel reads of a send, single or batch, is what the code for all frames reads."""

from __future__ import annotations

import functools
import random
from typing import NamedTuple

import numpy as np
import pytest

from mqlake.broker.lane.layout import Most
from mqlake.broker.send.properties import StoredProperties
from mqlake.broker.settings import make_broker_settings
from mqlake.broker.state.lite.names import is_lite_topic
from mqlake.dispatch.compiled import put_sent
from mqlake.dispatch.kernel import is_compiled
from mqlake.formats.properties import LITE_TOPIC, decode_properties
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.protocol.unique_keys import UniqueKeys
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from mqlake.storage.clock import SystemClock
from tests.broker.send.random_sends import (
    BATCH_FIELDS,
    KEY,
    LITE,
    UNUSUAL,
    UNUSUAL_IN_BATCHES,
    USUAL,
    USUAL_IN_BATCHES,
    batch,
    json_send,
    made,
    random_fields,
)
from tests.hostile.mutate import change
from tests.protocol.messages import SEND_FIELDS, frame, json_header
from tests.protocol.test_golden import golden

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only a compiled kernel reads so")

MOST = Most(1 << 16, 1 << 15, 1 << 12, 1 << 10)
PLAIN = SEND_FIELDS | {"i": KEY}


@functools.cache
def properties() -> StoredProperties:
    settings = make_broker_settings({})
    return StoredProperties(settings, UniqueKeys(settings.broker_address, SystemClock()))


class Read(NamedTuple):
    """What `read_send` returns."""

    end: int
    topic_at: int
    topic_size: int
    queue_id: int
    opaque: int
    key_at: int
    key_size: int
    lite_at: int
    lite_size: int
    is_batch: int


def read(data: bytes, at: int) -> tuple[Read, bytes, list[int]]:
    """Return what the kernel reads, with the stored properties and the numbers for `put_sent`."""
    from mqlake.broker.lane.compiled.send_frame import read_send
    from mqlake.broker.lane.compiled.send_header import FIELDS

    stored, numbers = np.zeros(1 << 16, np.uint8), np.zeros(put_sent.NUMBERS, np.int64)
    own, most = np.frombuffer(properties().own.encode(), np.uint8), np.array(MOST)
    starts, lengths = np.zeros(FIELDS, np.int64), np.zeros(FIELDS, np.int64)
    received = np.frombuffer(data, np.uint8)
    found = read_send(received, at, own, most, starts, lengths, stored, numbers)
    return Read(*found), stored.tobytes(), numbers.tolist()


def check(data: bytes, at: int = 0) -> bool:
    """Return whether a frame is read; see that this is what all frames are read as."""
    found, kept, numbers = read(data, at)
    if not found.end:
        return False
    (command,) = FrameReader(Limits(MOST.frame, MOST.header)).feed(data[at : found.end])
    assert isinstance(command, Command)
    header = command.header(SendMessageHeaderV2)
    code = RequestCode.SEND_BATCH_MESSAGE if header.batch else RequestCode.SEND_MESSAGE_V2
    assert (command.code, command.flag, command.opaque) == (code, 0, found.opaque)
    topic = data[found.topic_at : found.topic_at + found.topic_size]
    assert (topic.decode("utf-8", "replace"), header.queue_id) == (header.topic, found.queue_id)
    assert header.queue_id >= 0
    assert found.is_batch == int(header.batch or False)
    body_at, size = numbers[put_sent.BODY_AT], numbers[put_sent.BODY_SIZE]
    assert data[body_at : body_at + size] == command.body
    assert numbers[put_sent.FLAG :] == [
        header.flag,
        header.sys_flag,
        header.born_timestamp,
        header.reconsume_times or 0,
    ]
    stored = kept[: numbers[put_sent.PROPERTIES_SIZE]]
    key = kept[found.key_at : found.key_at + found.key_size].decode()
    assert properties().of(header.properties) == (stored, key)
    assert key.isalnum()
    if found.lite_size:
        lite = stored[found.lite_at : found.lite_at + found.lite_size].decode()
        assert not found.is_batch
        assert decode_properties(stored)[LITE_TOPIC] == lite
        assert is_lite_topic(lite)
    else:
        assert LITE_TOPIC not in decode_properties(stored)
    assert len(stored) <= MOST.properties
    return True


@pytest.mark.parametrize("form", ["json", "binary"])
def test_frames_of_the_stock_client_are_read(form: str) -> None:
    data = golden("send", form)
    assert check(data)
    assert check(b"before" + data + b"after", len(b"before"))


@pytest.mark.parametrize("kind", Serialization)
@pytest.mark.parametrize("name", USUAL)
def test_each_usual_value_is_read(kind: int, name: str) -> None:
    for value in USUAL[name]:
        is_read = check(made(kind, PLAIN | {name: value}))
        # In JSON, other letters than those of ASCII are read otherwise.
        assert is_read == (kind == Serialization.ROCKETMQ or value.isascii()), value


@pytest.mark.parametrize("kind", Serialization)
@pytest.mark.parametrize("name", [name for name in UNUSUAL if name != "b"])
def test_each_unusual_value_is_left(kind: int, name: str) -> None:
    for value in UNUSUAL[name]:
        # Whether there is such a queue, and whether there are lite topics, is seen later.
        if (name, value) not in (("e", "4"), ("i", LITE)):
            assert not check(made(kind, PLAIN | {name: value})), value


@pytest.mark.parametrize("kind", Serialization)
def test_the_name_of_a_lite_topic_is_read(kind: int) -> None:
    for name in ("a", "session-1", "A_Z-", "a" * 128):
        lite = f"__LITE_TOPIC\1{name}\2"
        for text in (f"{KEY}{lite}", f"{KEY}{lite[:-1]}", f"{lite}{KEY}", f"K\1v\2{lite}{KEY}"):
            data = made(kind, PLAIN | {"i": text})
            assert check(data)
            found, stored, _ = read(data, 0)
            assert stored[found.lite_at : found.lite_at + found.lite_size] == name.encode()


@pytest.mark.parametrize("kind", Serialization)
@pytest.mark.parametrize(
    "text",
    [
        *("__LITE_TOPIC", "__LITE_TOPIC\1", "__LITE_TOPICS\1a", "__LITE_TOPIC\1a\1b"),
        *("__LITE_TOPIC\1a b", "__LITE_TOPIC\1a$b", f"__LITE_TOPIC\1{'a' * 129}"),
        *("__LITE_TOPIC\1a\2__LITE_TOPIC\1a", "__LITE_TOPIC\1a\2DELAY\0013"),
        "__LITE_TOPIC\1a\2INNER_MULTI_DISPATCH\1%LMQ%$a$b",
    ],
)
def test_what_may_not_be_sent_to_a_lite_topic_is_left(kind: int, text: str) -> None:
    for properties in (f"{KEY}{text}\2", f"{text}\2{KEY}"):
        assert not check(made(kind, PLAIN | {"i": properties}))


@pytest.mark.parametrize("kind", Serialization)
def test_a_batch_to_a_lite_topic_is_left(kind: int) -> None:
    assert not check(batch(BATCH_FIELDS | {"i": LITE}, b"body", kind=kind))


@pytest.mark.parametrize("kind", Serialization)
def test_each_usual_value_of_a_batch_is_read(kind: int) -> None:
    for name, values in USUAL_IN_BATCHES.items():
        for value in values:
            is_read = check(batch(BATCH_FIELDS | {name: value}, b"body", kind=kind))
            assert is_read == (kind == Serialization.ROCKETMQ or value.isascii()), (name, value)


@pytest.mark.parametrize("kind", Serialization)
def test_each_unusual_value_of_a_batch_is_left(kind: int) -> None:
    for name, values in UNUSUAL_IN_BATCHES.items():
        for value in values:
            if name != "b" and (name, value) != ("e", "4"):
                assert not check(batch(BATCH_FIELDS | {name: value}, b"body", kind=kind)), value


@pytest.mark.parametrize("kind", Serialization)
def test_a_batch_is_one_by_its_code_and_by_its_header(kind: int) -> None:
    assert not check(made(kind, BATCH_FIELDS))
    assert not check(batch(PLAIN, b"body", kind=kind))
    assert not check(batch(PLAIN | {"m": "false"}, b"body", kind=kind))


@pytest.mark.parametrize("kind", Serialization)
@pytest.mark.parametrize("name", "abcdefghi")
def test_a_field_that_must_be_there(kind: int, name: str) -> None:
    assert not check(made(kind, {key: value for key, value in PLAIN.items() if key != name}))


@pytest.mark.parametrize("kind", Serialization)
def test_sizes_up_to_the_limits_are_read(kind: int) -> None:
    assert check(made(kind, PLAIN, bytes(MOST.body)))
    assert not check(made(kind, PLAIN, bytes(MOST.body + 1)))
    assert not check(made(kind, PLAIN, b""))
    room = MOST.properties - len(properties().own) - len(KEY) - len("KEYS\1\2")
    for more in range(3):
        fields = PLAIN | {"i": f"KEYS\1{'k' * (room + more)}\2{KEY}"}
        assert check(made(kind, fields)) == (more == 0)
    # The separator that is added counts.
    for more in range(3):
        fields = PLAIN | {"i": f"KEYS\1{'k' * (room + more)}\2{KEY[:-1]}"}
        assert check(made(kind, fields)) == (more == 0)
    assert not check(made(kind, PLAIN | {"n": "x" * MOST.header}))


@pytest.mark.parametrize("kind", Serialization)
def test_no_part_of_a_frame_is_read(kind: int) -> None:
    data = made(kind, PLAIN)
    assert not any(check(data[:end]) for end in range(len(data)))


@pytest.mark.parametrize("opaque", [0, 1, (1 << 31) - 1, -1, -(1 << 31)])
@pytest.mark.parametrize("kind", Serialization)
def test_opaques(kind: int, opaque: int) -> None:
    assert check(made(kind, PLAIN, opaque=opaque))


def test_members_in_another_order_are_read() -> None:
    header = json_header(extFields=PLAIN).decode()
    fields, _, rest = header.partition(',"flag"')
    code, _, fields = fields.partition(",")
    assert check(frame(f'{code},"flag"{rest[:-1]},{fields}}}'.encode(), b"body"))
    assert check(json_send(PLAIN, remark="as others write it"))


@pytest.mark.parametrize(
    "members",
    [
        {"flag": 1},
        {"flag": 2},
        {"flag": "0"},
        {"opaque": 1 << 31},
        {"opaque": "7"},
        {"opaque": 7.0},
        {"opaque": None},
        {"language": 7},
        {"language": "grün"},
        {"remark": None},
        {"version": "513"},
        {"other": 1},
        {"body": "x"},
        {"code": 10},
        {"code": 320},
        {"extFields": None},
        {"extFields": {}},
        {"extFields": PLAIN | {"e": 3}},
        {"extFields": PLAIN | {"aa": "x"}},
        {"extFields": PLAIN | {"z": "x"}},
        {"extFields": PLAIN | {"a": 'say "x"'}},
        {"extFields": PLAIN | {"a": "\1"}},
        {"extFields": PLAIN | {"i": f"KEYS\1\\\2{KEY}"}},
        {"extFields": PLAIN | {"i": f"KEYS\1a\3\2{KEY}"}},
    ],
    ids=str,
)
def test_what_is_no_usual_json_is_left(members: dict[str, object]) -> None:
    assert not check(frame(json_header(**{"extFields": PLAIN, **members}), b"body"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b":", b": "),
        (b'"flag":0', b'"flag":0,"flag":0'),
        (b'"flag":0', b'"flag":00'),
        (b'"flag":0', b'"flag":'),
        (b'"a":"group"', b'"a":"group","a":"group"'),
        (b'"code":310', b'"code":310,"code":310'),
        (b'"opaque":7,', b""),
        (b"}", b"} "),
        (b"{", b" {"),
        (b'"a":', b'"a" :'),
        (rb"\u0001", rb"\u0003"),
        (rb"\u0001", rb"\u0000"),
        (rb"\u0001", rb"\U0001"),
        (rb"\u0001", rb"\u01"),
        (rb"\u0001", b"\1"),
        (b'"b":"TopicTest"', b'"b":"Topic\x7fTest"'),
        (b'"b":"TopicTest"', b'"b":TopicTest'),
        (b'"version":513}', b'"version":513'),
        (b'"version":513}', b'"version":513,}'),
        (b'"version":513}', b'"version":513}}'),
    ],
)
def test_json_that_is_written_otherwise_is_left(old: bytes, new: bytes) -> None:
    header = json_header(extFields=PLAIN)
    assert old in header
    assert not check(frame(header.replace(old, new, 1), b"body"))


@pytest.mark.parametrize("kind", Serialization)
def test_mutated_frames_are_what_the_reader_says(kind: int) -> None:
    dice = random.Random(13)
    read = 0
    for number in range(4000):
        fields = random_fields(dice, USUAL)
        if dice.random() < 0.1:
            name = dice.choice(list(UNUSUAL))
            fields |= {name: dice.choice(UNUSUAL[name])}
        body = dice.randbytes(dice.choice((1, 4, 200)))
        if dice.random() < 0.3:
            data = bytearray(batch(fields | {"m": "true"}, body, number, kind))
        else:
            data = bytearray(made(kind, fields, body, number))
        for _ in range(dice.choice((0, 1, 1, 1, 3))):
            change(dice, data, (), b"", len(data))
        read += check(bytes(data))
    assert read > 500
