"""Replies reach the client that waits for them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.admin.removal import remove_topic
from mqlake.formats.own_properties import POP_RECEIPT
from mqlake.formats.properties import (
    CANCEL,
    MULTI_DISPATCH,
    MULTI_QUEUE_OFFSET,
    decode_properties,
)
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.reply import ReplyMessageHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from tests import simulated
from tests.broker.clients_of import known_client
from tests.broker.running import PATIENCE, running, to

TOPIC = "DefaultCluster_REPLY_TOPIC"
PUSH = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
PAIRS = "CORRELATION_ID\x01c1\x02REPLY_TO_CLIENT\x01waiting\x02"


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_reply_is_pushed(tmp_path: Path, is_stored: bool) -> None:
    async def run() -> None:
        async with (
            running(tmp_path, storeReplyMessageEnable=is_stored) as broker,
            known_client(broker, {PUSH: 0}, "waiting") as client,
        ):
            header = to(TOPIC, properties=PAIRS, flag=3, sys_flag=1, queue_id=-1)
            answer = await broker.ask(RequestCode.SEND_REPLY_MESSAGE_V2, header, b"yes")
            assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
            assert answer.header(SendMessageResponseHeader).queue_id == 0
            pushed = await client.next()
            assert bytes(pushed.body) == b"yes"
            found = pushed.header(ReplyMessageHeader)
            assert (found.topic, found.flag, found.sys_flag) == (TOPIC, 3, 1)
            assert found.store_host == broker.address
            pairs = decode_properties((found.properties or "").encode())
            assert int(pairs.pop("PUSH_REPLY_TIME")) == found.store_timestamp
            assert pairs == decode_properties(PAIRS.encode())
            assert len(broker.records(TOPIC)) == is_stored

    simulated.run(run())


@pytest.mark.parametrize(
    ("pairs", "remark"),
    [
        ("", "reply message properties[REPLY_TO_CLIENT] is null"),
        ("REPLY_TO_CLIENT\x01gone\x02", "push reply message fail, channel of <gone> not found."),
        (PAIRS, "push reply message to waiting fail: 1 None"),
    ],
)
def test_nobody_takes_the_reply(tmp_path: Path, pairs: str, remark: str) -> None:
    async def run() -> None:
        async with (
            running(tmp_path) as broker,
            known_client(broker, {PUSH: ResponseCode.SYSTEM_ERROR}, "waiting"),
        ):
            answer = await broker.ask(
                RequestCode.SEND_REPLY_MESSAGE_V2, to(TOPIC, properties=pairs), b"yes"
            )
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert answer.remark == remark
            assert [record.body for record in broker.records(TOPIC)] == [b"yes"]

    simulated.run(run())


@pytest.mark.parametrize("name", [CANCEL, MULTI_DISPATCH, MULTI_QUEUE_OFFSET, POP_RECEIPT])
def test_a_reply_has_no_property_that_producers_must_not_set(tmp_path: Path, name: str) -> None:
    """It could recall another topic's message, or let those of a lite topic be lost."""

    async def run() -> None:
        async with running(tmp_path) as broker:
            header = to(TOPIC, properties=f"{PAIRS}{name}\x01Orders+1\x02KEYS\x01k\x02")
            await broker.ask(RequestCode.SEND_REPLY_MESSAGE_V2, header, b"yes")
            (record,) = broker.records(TOPIC)
            kept = decode_properties(f"{PAIRS}KEYS\x01k\x02".encode())
            assert {each: record.properties.get(each) for each in (*kept, name)} == {
                **kept,
                name: None,
            }

    simulated.run(run())


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_reply_is_not_stored_in_a_topic_that_was_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_created_again: bool
) -> None:
    async def run() -> None:
        async with (
            running(tmp_path) as broker,
            known_client(broker, {PUSH: 0}, "waiting") as client,
        ):
            (waiting,) = [broker.state.clients.producer_with_id("waiting")]
            assert waiting is not None
            may_answer, ask = asyncio.Event(), type(waiting.peer).request

            async def late(*args: Any) -> Any:
                answer = await ask(*args)
                await may_answer.wait()
                return answer

            monkeypatch.setattr(type(waiting.peer), "request", late)
            broker.state.topics.make("Replies", 1)
            header = to("Replies", properties=PAIRS)
            reply = asyncio.create_task(
                broker.ask(RequestCode.SEND_REPLY_MESSAGE_V2, header, b"yes")
            )
            await client.next()
            await remove_topic(broker.state, broker.runtime, "Replies")
            if is_created_again:
                broker.state.topics.make("Replies", 1)
            may_answer.set()
            assert (await asyncio.wait_for(reply, PATIENCE)).code == ResponseCode.SUCCESS
            assert broker.records("Replies") == []

    simulated.run(run())
