"""Plain messages are prepared together as each would be alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqlake.grpc.messages import Code, Duration, Encoding, Message, MessageType
from mqlake.proxy.sending.checks import MessageChecks
from mqlake.proxy.sending.outgoing_properties import prepared
from mqlake.proxy.sending.plain_messages import PlainMessages
from mqlake.proxy.settings import ProxySettings
from tests import simulated
from tests.proxy.sending.messages import at, message, send
from tests.proxy.serving import serving

NOW, HOST = 1_700_000_000_000, "10.0.0.7"
SETTINGS = ProxySettings()

PLAIN: dict[str, dict[str, Any]] = {
    "bare": {},
    "full": {
        "tag": "tag",
        "keys": ["k1", "k2"],
        "born_timestamp": at(NOW - 1),
        "born_host": "my-host",
        "trace_context": "trace",
        "user_properties": {"b": "2", "a": "1"},
    },
    "other letters": {"tag": "größe", "user_properties": {"größe": "ü€"}},
    "an empty value": {"user_properties": {"a": "", "b": "2"}},
    "a time long ago": {"born_timestamp": at(-1)},
    "many properties": {"user_properties": {f"name-{n}": "v" for n in range(128)}},
    "a long id": {"message_id": "x" * 255},
}
IN_BATCHES: dict[str, dict[str, Any]] = {
    "a group": {"message_group": "g"},
    "compressed": {"body_encoding": Encoding.GZIP},
    "both": {"message_group": "größe", "body_encoding": Encoding.GZIP},
}
NOT_PLAIN: dict[str, dict[str, Any]] = {
    "a priority": {"priority": 0},
    "a delivery time": {"delivery_timestamp": at(0)},
    "a transaction": {"message_type": MessageType.TRANSACTION},
    "a recovery time": {"orphaned_transaction_recovery_duration": Duration()},
    "a lite topic": {"lite_topic": "lite"},
    "an empty group": {"message_group": ""},
    "a blank group": {"message_group": " "},
    "a long group": {"message_group": "g" * 64},
    "an empty tag": {"tag": ""},
    "a blank tag": {"tag": " "},
    "two tags": {"tag": "a|b"},
    "a blank key": {"keys": ["k", " "]},
    "no id": {"message_id": ""},
    "a blank id": {"message_id": " "},
    "an id that is too long": {"message_id": "x" * 256},
    "a host that is too long": {"born_host": "x" * 256},
    "a trace that is too long": {"trace_context": "x" * 4097},
    "no body": {"body": b""},
    "a body that is too large": {"body": bytes(SETTINGS.max_message_size + 1)},
    "a reserved name": {"user_properties": {"TAGS": "a"}},
    "the name of the group": {"user_properties": {"__SHARDINGKEY": "a"}},
    "the name of the trace": {"user_properties": {"TRACE_CONTEXT": "a"}},
    "too many properties": {"user_properties": {f"name-{n}": "v" for n in range(129)}},
    "large properties": {"user_properties": {"a": "x" * SETTINGS.max_user_property_size}},
    "large properties of other letters": {
        "user_properties": {"a": "ü" * (SETTINGS.max_user_property_size // 4)}
    },
    **{
        f"{name}, character {ord(character)}": fields
        for character in "\0\1\2\t\n\x7f\x80\x9f"
        for name, fields in {
            "name": {"user_properties": {f"a{character}": "v"}},
            "value": {"user_properties": {"a": f"{character}v"}},
            "pair": {"user_properties": {"a": "b\2c\1d", "e": f"f{character}"}},
            "tag": {"tag": f"t{character}"},
            "key": {"keys": [f"k{character}"]},
            "id": {"message_id": f"i{character}"},
            "group": {"message_group": f"g{character}"},
            "host": {"born_host": f"h{character}"},
            "trace": {"trace_context": f"c{character}"},
        }.items()
    },
}


def together(*messages: Message) -> list[tuple[Any, ...]] | None:
    found = PlainMessages(SETTINGS).prepared(messages, "T", HOST, NOW)
    return None if found is None else [tuple(each) for each in found]


def alone(*messages: Message) -> list[tuple[Any, ...]]:
    checks = MessageChecks(SETTINGS)
    return [tuple(prepared(each, "T", HOST, checks, NOW)) for each in messages]


@pytest.mark.parametrize("more", IN_BATCHES.values(), ids=IN_BATCHES)
def test_plain_messages_are_prepared_as_each_is_alone(more: dict[str, Any]) -> None:
    for shared in ({}, more):
        messages = [message(**fields | shared) for fields in PLAIN.values()]
        assert together(*messages) == alone(*messages)
        for each in messages:
            assert together(each) == alone(each)


@pytest.mark.parametrize("fields", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_a_message_that_is_not_plain_is_left_to_the_checks_of_one(fields: dict[str, Any]) -> None:
    own = {"message_group": fields["message_group"]} if "message_group" in fields else {}
    assert together(message(**fields)) is None
    assert together(message(**own), message(**fields), message(**own)) is None


def test_messages_that_differ_are_left_to_the_checks_of_one() -> None:
    assert together(message(), message(topic="U")) is None
    for fields in IN_BATCHES.values():
        assert together(message(), message(**fields)) is None
        assert together(message(**fields), message()) is None


@pytest.mark.parametrize("count", [2, 64, 65, 200])
def test_a_batch_is_refused_for_its_last_message(tmp_path: Path, count: int) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", "FIFO")
            one = message(message_group="g")
            for last, code in (
                (message(message_group="g", tag="a\n"), Code.ILLEGAL_MESSAGE_TAG),
                (message(topic="U", message_group="g"), Code.MESSAGE_CORRUPTED),
                (message(message_group="h"), Code.MESSAGE_CORRUPTED),
                (message(), Code.MESSAGE_CORRUPTED),
            ):
                found = await calls.ask("SendMessage", send(*[one] * (count - 1), last))
                assert found.status.code == code
            await asyncio.sleep(0.1)
            assert all(not calls.broker.records("T", queue_id) for queue_id in range(4))
            found = await calls.ask("SendMessage", send(*[one] * count))
            assert [entry.offset for entry in found.entries] == [*range(count)]

    simulated.run(run())
