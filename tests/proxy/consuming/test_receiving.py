"""ReceiveMessage returns messages that others do not get for a while."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.grpc.messages import (
    AckMessageEntry,
    ChangeInvisibleDurationRequest,
    Code,
    Duration,
    Encoding,
    MessageType,
)
from mqlake.proxy.consuming.message_handle import parse_handle
from mqlake.proxy.settings import ProxySettings
from tests import simulated
from tests.proxy.consuming.consumer import GROUP, TOPIC, TestedConsumer, bodies, send
from tests.proxy.serving import Calls, named, serving


def run(
    path: Path,
    test: Callable[[Calls], Awaitable[None]],
    proxy_settings: ProxySettings | None = None,
    **settings: Any,
) -> None:
    async def served() -> None:
        known = replace(proxy_settings or ProxySettings(), channel_expired_timeout=1 << 40)
        async with serving(path, known, **settings) as calls:
            calls.topic(TOPIC)
            await test(calls)

    simulated.run(served())


def test_a_message_is_received_once_while_it_is_invisible_and_again_later(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "one", KEYS="k1 k2", TAGS="A", colour="blue", UNIQ_KEY="ID1")
        (message,) = await consumer.receive()
        found = message.system_properties
        assert message.body == b"one"
        assert dict(message.user_properties) == {"colour": "blue"}
        assert (found.tag, list(found.keys), found.message_id) == ("A", ["k1", "k2"], "ID1")
        assert found.body_digest.checksum == md5(b"one").hexdigest().upper()
        assert (found.body_encoding, found.message_type) == (Encoding.IDENTITY, MessageType.NORMAL)
        assert (found.delivery_attempt, found.queue_offset) == (1, 0)
        assert parse_handle(found.receipt_handle).physical_offset >= 0
        assert await consumer.receive() == []
        await asyncio.sleep(60)
        (again,) = await consumer.receive()
        assert (again.body, again.system_properties.delivery_attempt) == (b"one", 2)

    run(tmp_path, test)


def test_an_acknowledged_message_does_not_come_again(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "one", "two")
        messages = await consumer.receive()
        found = await consumer.acknowledge(*messages)
        assert found.status.code == Code.OK
        assert [each.status.code for each in found.entries] == [Code.OK, Code.OK]
        await asyncio.sleep(120)
        assert await consumer.receive() == []

    run(tmp_path, test)


def test_a_call_waits_for_a_message(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        waiting = asyncio.create_task(consumer.receive())
        await asyncio.sleep(3)
        await send(calls, "late")
        assert bodies(await waiting) == ["late"]

    run(tmp_path, test)


def test_only_messages_with_the_tag_are_received(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "a", TAGS="A")
        await send(calls, "b", TAGS="B")
        assert bodies(await consumer.receive(tags="B || C")) == ["b"]

    run(tmp_path, test)


def test_messages_are_selected_by_sql(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "cheap", price="5")
        await send(calls, "dear", price="50")
        assert bodies(await consumer.receive(sql="price > 10")) == ["dear"]

    run(tmp_path, test, enablePropertyFilter="true")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"invisible": 9}, Code.ILLEGAL_INVISIBLE_TIME),
        ({"invisible": 12 * 3600 + 1}, Code.ILLEGAL_INVISIBLE_TIME),
        ({"tags": "||"}, Code.ILLEGAL_FILTER_EXPRESSION),
        ({"group": None}, Code.ILLEGAL_CONSUMER_GROUP),
    ],
)
def test_refuses_what_cannot_be_served(tmp_path: Path, more: dict[str, Any], code: Code) -> None:
    async def test(calls: Calls) -> None:
        status, last = await TestedConsumer(calls).responses(**more)
        assert status.status.code == code
        assert last.WhichOneof("content") == "delivery_timestamp"

    run(tmp_path, test)


def test_a_client_without_settings_is_refused(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        calls.service.state.clients.end(consumer.client_id)
        status, _ = await consumer.responses()
        assert status.status.code == Code.INTERNAL_SERVER_ERROR

    run(tmp_path, test)


def test_a_compressed_body_stays_compressed_if_clients_can_read_it(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        stored = zlib.compress(b"long " * 1000)
        await send(calls, stored, sys_flag=COMPRESSED)
        (message,) = await consumer.receive()
        assert message.body == stored
        assert message.system_properties.body_encoding == Encoding.GZIP

    run(tmp_path, test)


def test_a_cancelled_call_receives_nothing_and_the_next_one_receives_it(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        waiting = asyncio.create_task(consumer.receive())
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await send(calls, "one")
        (message,) = await consumer.receive()
        assert message.system_properties.delivery_attempt == 1

    run(tmp_path, test)


def test_the_messages_of_a_call_that_is_lost_are_visible_again_after_a_second(
    tmp_path: Path,
) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "one", "two", "three")
        stream = consumer.stream()
        assert (await anext(stream)).status.code == Code.OK
        assert (await anext(stream)).message.body == b"one"
        assert (await anext(stream)).message.body == b"two"
        await stream.aclose()
        await asyncio.sleep(2)
        # Clients drop what they have received of a call that fails.
        assert sorted(bodies(await consumer.receive())) == ["one", "three", "two"]

    run(tmp_path, test)


def test_a_message_that_was_delivered_too_often_becomes_a_dead_letter(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls, max_attempts=1)
        await consumer.begin()
        await send(calls, "bad")
        assert bodies(await consumer.receive(invisible=10)) == ["bad"]
        await asyncio.sleep(11)
        assert await consumer.receive() == []
        await asyncio.sleep(1)
        (dead,) = calls.broker.records(f"%DLQ%{GROUP}")
        assert dead.body == b"bad"
        await asyncio.sleep(120)
        assert await consumer.receive() == []

    run(tmp_path, test)


def test_messages_are_renewed_until_they_are_acknowledged(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "slow")
        (message,) = await consumer.receive(auto_renew=True)
        await asyncio.sleep(900)
        assert await consumer.receive(auto_renew=True) == []
        found = await consumer.acknowledge(message)
        assert found.status.code == Code.OK
        await asyncio.sleep(900)
        assert await consumer.receive(auto_renew=True) == []

    run(tmp_path, test)


def test_the_messages_of_a_client_that_ends_are_visible_after_a_second(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer, other = TestedConsumer(calls), TestedConsumer(calls, "consumer-2")
        await consumer.begin()
        await send(calls, "one")
        assert len(await consumer.receive(auto_renew=True)) == 1
        calls.service.state.clients.end(consumer.client_id)
        await asyncio.sleep(2)
        assert bodies(await other.receive()) == ["one"]

    run(tmp_path, test)


def test_without_a_telemetry_stream_messages_are_not_renewed_but_returned(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls, is_connected=False)
        await consumer.begin()
        await send(calls, "one")
        status, _ = await consumer.responses(auto_renew=True)
        assert status.status.code == Code.MESSAGE_NOT_FOUND
        assert status.status.message == "The client [consumer-1] is disconnected."
        await asyncio.sleep(2)
        assert bodies(await consumer.receive()) == ["one"]

    run(tmp_path, test)


def test_a_client_cannot_have_all_messages_renewed(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "one", "two")
        assert len(await consumer.receive(1, auto_renew=True)) == 1
        status, _ = await consumer.responses(1, auto_renew=True)
        assert status.status.code == Code.TOO_MANY_REQUESTS
        assert bodies(await consumer.receive(1)) == ["two"]

    run(tmp_path, test, proxy_settings=ProxySettings(max_renewals_per_client=1))


def test_a_client_cannot_use_up_the_waiting_calls(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer, other = TestedConsumer(calls), TestedConsumer(calls, "consumer-2")
        waiting = asyncio.create_task(consumer.receive())
        await asyncio.sleep(1)
        status, _ = await consumer.responses()
        assert status.status.code == Code.TOO_MANY_REQUESTS
        assert await other.receive() == []
        assert await waiting == []
        assert await consumer.receive() == []

    run(tmp_path, test, proxy_settings=ProxySettings(max_polls_per_client=1))


def test_the_deadline_of_a_call_limits_its_poll(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        now = asyncio.get_running_loop().time
        consumer = TestedConsumer(calls, deadline=now() + 7, now=now)
        begin = now()
        found = await consumer.receive(long_polling_timeout=Duration(seconds=20))
        assert found == []
        assert 5 <= now() - begin <= 7
        status, _ = await consumer.responses()
        assert status.status.code == Code.BAD_REQUEST

    run(tmp_path, test)


def test_in_order_a_message_that_is_not_acknowledged_holds_back_the_following(
    tmp_path: Path,
) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls, is_fifo=True)
        await consumer.begin()
        await send(calls, "1", "2", "3", __SHARDINGKEY="g")
        (first,) = await consumer.receive(1, attempt_id="a")
        assert first.system_properties.message_group == "g"
        assert first.system_properties.message_type == MessageType.FIFO
        assert await consumer.receive(attempt_id="b") == []
        (again,) = await consumer.receive(1, attempt_id="a")
        assert again.body == b"1"
        assert (await consumer.acknowledge(again)).status.code == Code.OK
        second, third = await consumer.receive(attempt_id="c")
        assert bodies([second, third]) == ["2", "3"]
        await asyncio.sleep(61)
        second, third = await consumer.receive(attempt_id="d")
        assert bodies([second, third]) == ["2", "3"]
        assert second.system_properties.delivery_attempt == 2

    run(tmp_path, test)


def test_the_order_is_that_of_the_group_not_of_settings_that_a_client_once_got(
    tmp_path: Path,
) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        group = SubscriptionGroup(group_name=GROUP, consume_message_orderly=True)
        calls.broker.state.groups.put(group)
        await send(calls, "1", "2")
        assert bodies(await consumer.receive(1)) == ["1"]
        assert await consumer.receive(1) == []

    run(tmp_path, test)


def test_the_attempts_are_those_of_the_group_not_of_another_one(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls, max_attempts=1)
        consumer.group = "other"
        await consumer.begin()
        await send(calls, "one")
        assert len(await consumer.receive(invisible=10)) == 1
        await asyncio.sleep(11)
        assert bodies(await consumer.receive()) == ["one"]

    run(tmp_path, test)


def test_messages_that_wait_for_a_client_when_its_call_is_lost_are_returned(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "one")
        call = calls.call("ReceiveMessage", consumer.client_id)
        request = consumer.request(auto_renew=True)
        found = [each async for each in calls.methods["ReceiveMessage"].handler(call, request)]
        assert len(found) == 3
        call.cancel()  # The responses have not left yet, and the connection is lost.
        await asyncio.sleep(2)
        assert bodies(await consumer.receive()) == ["one"]

    run(tmp_path, test)


def test_calls_that_wait_cannot_exceed_the_messages_that_are_renewed(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        waiting = [asyncio.create_task(consumer.responses(3, auto_renew=True)) for _ in range(3)]
        await asyncio.sleep(1)
        await send(calls, *(f"{number}" for number in range(9)))
        found = await asyncio.gather(*waiting)
        codes = sorted(responses[0].status.code for responses in found)
        assert codes == [Code.OK, Code.TOO_MANY_REQUESTS, Code.TOO_MANY_REQUESTS]

    run(tmp_path, test, proxy_settings=ProxySettings(max_renewals_per_client=5))


def test_who_calls_with_the_id_of_another_client_does_not_use_up_its_share(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        stranger = consumer.stream()
        other = calls.stream(
            "ReceiveMessage", consumer.request(), consumer.client_id, peer="10.9.9.9:5000"
        )
        waiting = asyncio.create_task(anext(other))
        await asyncio.sleep(1)
        assert (await anext(stranger)).status.code == Code.MESSAGE_NOT_FOUND
        await waiting

    run(tmp_path, test, proxy_settings=ProxySettings(max_polls_per_client=1))


def test_a_change_without_a_time_makes_a_message_visible_at_once(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        await consumer.begin()
        await send(calls, "one")
        (message,) = await consumer.receive()
        system = message.system_properties
        request = ChangeInvisibleDurationRequest(
            group=named(GROUP),
            topic=named(TOPIC),
            receipt_handle=system.receipt_handle,
            message_id=system.message_id,
        )
        found = await calls.ask("ChangeInvisibleDuration", request, consumer.client_id)
        assert found.status.code == Code.OK
        assert bodies(await consumer.receive()) == ["one"]

    run(tmp_path, test)


def test_an_acknowledgement_of_very_many_messages_is_refused(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = TestedConsumer(calls)
        entries = [AckMessageEntry(message_id="x", receipt_handle="x")] * 1025
        assert (await consumer.acknowledge_by(*entries)).status.code == Code.BAD_REQUEST
        found = await consumer.acknowledge_by(*entries[:2])
        assert found.status.code == Code.INTERNAL_SERVER_ERROR

    run(tmp_path, test)
