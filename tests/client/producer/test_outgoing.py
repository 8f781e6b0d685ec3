"""Which messages are batched, and what is refused before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from mqlake import store
from mqlake.client import Message
from mqlake.client.producer.outgoing import Outgoing, Outgoings, are_plain
from mqlake.errors import FormatError
from mqlake.formats.message_batch import decode_batch
from mqlake.formats.message_id import UniqueKey
from mqlake.formats.properties import UNIQ_KEY, decode_properties
from mqlake.protocol.unique_keys import UniqueKeys
from mqlake.storage.clock import SystemClock

KEYS = UniqueKeys("10.0.0.1:0", SystemClock())


def test_messages_of_a_batch_have_the_unique_keys_of_its_result() -> None:
    messages = [
        Message(topic="t", body=b"0"),
        Message(topic="t", body=b"1", tags="red"),
        Message(topic="t", body=b"2", properties={UNIQ_KEY: "mine"}),
        Message(topic="t", body=b"3", properties={"a": f"{UNIQ_KEY}\x01b"}),
        Message(topic="t", body=b"4", properties={"a": "b", UNIQ_KEY: "\u00e9\x01", "c": "d"}),
    ]
    ((first, batch),) = Outgoings(KEYS, lambda: 0, None, 1000).groups(messages, 1000)
    assert first is messages[0]
    properties = [
        decode_properties(batch.body[part.properties_at :][: part.properties_length])
        for part in decode_batch(batch.body)
    ]
    assert [each[UNIQ_KEY] for each in properties] == list(batch.message_ids)
    assert [each.get("TAGS") for each in properties] == [None, "red", *[None] * 3]
    assert batch.message_ids[2] == "mine"
    assert batch.message_ids[4] == "\u00e9\x01"
    assert list(batch.message_ids[1:3]) == [properties[1][UNIQ_KEY], "mine"]
    assert UniqueKey.parse(batch.message_ids[0]).ip == bytes((10, 0, 0, 1))


@pytest.mark.parametrize("most", [1000, 200])
def test_messages_with_only_a_body_are_encoded_like_any_others(most: int) -> None:
    plain = [Message(topic="t", body=bytes(length)) for length in (3, 3, 0, 7, 7, 7)]
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    others = [Message(topic="t", body=bytes(3), tags="red"), *plain[1:]]
    assert are_plain(plain)
    assert not are_plain(others)
    found, expected = (
        [part for _, batch in groups(messages, most) for part in _parts(batch)]
        for groups, messages in ((outgoings.plain_groups, plain), (outgoings.groups, others))
    )
    assert expected[0][2].pop("TAGS") == "red"
    assert found == expected == [(0, len(each.body), {"WAIT": "true"}) for each in plain]
    batches = [batch for _ in range(2) for _, batch in outgoings.plain_groups(plain, most)]
    assert all(len(batch.body) <= most for batch in batches)
    assert len({key for batch in batches for key in batch.message_ids}) == 2 * len(plain)


def _parts(batch: Outgoing) -> list[tuple[int, int, dict[str, str]]]:
    found: list[tuple[int, int, dict[str, str]]] = []
    for part in decode_batch(batch.body):
        pairs = decode_properties(batch.body[part.properties_at :][: part.properties_length])
        assert UniqueKey.parse(pairs.pop(UNIQ_KEY)).ip == bytes((10, 0, 0, 1))
        found.append((part.flag, part.body_length, pairs))
    return found


def test_keys_of_batches_differ_also_if_others_are_made_in_between() -> None:
    keys = UniqueKeys("10.0.0.1:0", SystemClock())
    outgoings = Outgoings(keys, lambda: 0, None, 1000)
    seen: list[str] = []
    for _, batch in outgoings.plain_groups([Message(topic="t", body=bytes(100))] * 6, 400):
        seen += batch.message_ids
        seen += (key.decode() for key in keys.encoded(2**16 - 2, b"", b""))
    assert len(set(seen)) == len(seen)


def test_a_message_that_a_property_delays_is_not_batched() -> None:
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    late = Message(topic="t", body=b"late", properties={"DELAY": "2"})
    assert late.is_delayed
    groups = list(outgoings.groups([late, late], 1000))
    assert [(first is late, batch.is_batch) for first, batch in groups] == [(True, False)] * 2
    with pytest.raises(FormatError, match="a message is delayed"):
        outgoings.batch([late, late])


@pytest.mark.parametrize(
    "message",
    [
        Message(topic="t", body=b"first", priority=0),
        Message(topic="t", body=b"first", properties={"_SYS_MSG_PRIORITY_": "0"}),
    ],
)
def test_a_message_with_a_priority_is_not_batched(message: Message) -> None:
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    ((_, sent), (_, again)) = outgoings.groups([message, message], 1000)
    assert (sent.is_batch, again.is_batch) == (False, False)
    assert decode_properties(sent.properties.encode())["_SYS_MSG_PRIORITY_"] == "0"
    with pytest.raises(FormatError, match="a message has a priority"):
        outgoings.batch([message, message])


@pytest.mark.parametrize("priority", [-1, 2**31])
def test_an_invalid_priority_is_refused(priority: int) -> None:
    with pytest.raises(FormatError, match=f"priority {priority} is not between 0 and 2147483647"):
        Message(topic="t", body=b"", priority=priority).all_properties()


def test_messages_of_different_kinds_do_not_share_a_batch() -> None:
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    messages = [Message(topic="t", body=bytes(100)) for _ in range(5)]
    messages.insert(2, Message(topic="t", body=b"late", delay=5))
    groups = list(outgoings.groups(messages, 400))
    assert [messages.index(first) for first, _ in groups] == [0, 2, 0, 0]
    assert [len(outgoing.message_ids) for _, outgoing in groups] == [2, 1, 2, 1]
    assert [outgoing.is_batch for _, outgoing in groups] == [True, False, True, False]
    assert len({key for _, each in groups for key in each.message_ids}) == 6
    batch = outgoings.batch([messages[0], messages[1]])
    assert [part.body_length for part in decode_batch(batch.body)] == [100, 100]
    with pytest.raises(FormatError, match="a message is delayed"):
        outgoings.batch(messages)
    with pytest.raises(FormatError, match="exceeds the maximum of 1000"):
        outgoings.single(Message(topic="t", body=bytes(1001)))


@pytest.mark.parametrize(
    "message",
    [
        Message(topic="t", body=b"", delay=1, delay_level=2),
        Message(topic="t", body=b"", properties={"a": "b\x02c"}),
        Message(topic="t", body=b"", tags="\ud800"),
        Message(topic="", body=b""),
    ],
)
def test_invalid_messages_are_refused(message: Message) -> None:
    with pytest.raises(FormatError):
        Outgoings(KEYS, lambda: 0, None, 1000).single(message)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"body": "text"}, "a body is bytes, not str: encode a text with text.encode()"),
    ({"body": None}, "a body is bytes, not NoneType: "),
    ({"body": {"order": 1}}, "a body is bytes, not dict: "),
    ({"keys": 4711}, "keys: 4711 is not a text; give '4711'"),
    ({"keys": ["a", 4711]}, "keys: 4711 is not a text; give '4711'"),
    ({"tags": 7}, "tags: 7 is not a text; give '7'"),
    ({"properties": {"amount": 1}}, "properties: 1 is not a text; give '1'"),
]


@pytest.mark.parametrize(("given", "why"), WRONG)
@pytest.mark.parametrize("count", [1, 3])
def test_a_field_of_another_type_is_one_line(given: dict[str, Any], why: str, count: int) -> None:
    last = Message(**{"topic": "t", "body": b"", **given})
    messages = [Message(topic="t", body=b"first")] * (count - 1) + [last]
    outgoings = Outgoings(KEYS, lambda: 0, None, 1000)
    with pytest.raises(FormatError) as grouped:
        list(outgoings.groups(messages, 1000))
    assert str(grouped.value).startswith(f"topic t: {why}")
    with pytest.raises(FormatError) as alone:
        outgoings.single(last)
    assert str(alone.value) == str(grouped.value)


@pytest.mark.parametrize("count", [1, 3])
def test_a_message_of_the_store_is_one_line(count: int) -> None:
    messages: Any = [store.Message("t", b"x")] * count
    with pytest.raises(FormatError, match=r"Message is not a mqlake\.client\.Message$"):
        list(Outgoings(KEYS, lambda: 0, None, 1000).groups(messages, 1000))
