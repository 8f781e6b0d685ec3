"""Heartbeats, groups, notices."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.clients import ConsumerGroupHeader, UnregisterClientHeader
from mqlake.remoting.slices import run_at_once
from tests import simulated
from tests.broker.consuming import Consumer, heartbeat, subscription
from tests.broker.running import Running, running
from tests.until import until


async def ids(broker: Running, group: str) -> list[str] | int:
    header = ConsumerGroupHeader(consumer_group=group)
    answer = await broker.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
    return answer.code or json.loads(bytes(answer.body))["consumerIdList"]


async def until_gone(broker: Running, group: str, client_id: str) -> None:
    await until(lambda: not broker.state.clients.consumer(group, client_id))


def test_consumers_come_and_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            one, two = Consumer(broker, "one"), Consumer(broker, "two")
            answer = await one.beat("readers", subscription("Orders"))
            assert answer.code == ResponseCode.SUCCESS
            assert answer.fields["IS_SUPPORT_HEART_BEAT_V2"] == "true"
            assert await ids(broker, "readers") == ["one"]
            assert await one.told(1) == ["readers"]

            await two.beat("readers", subscription("Orders"))
            assert await ids(broker, "readers") == ["one", "two"]
            assert (await one.told(2), await two.told(1)) == (["readers"] * 2, ["readers"])

            await two.beat("readers", subscription("Orders"))  # nothing new, nothing told
            await two.ask(
                RequestCode.UNREGISTER_CLIENT,
                UnregisterClientHeader(client_id="two", consumer_group="readers"),
            )
            assert await ids(broker, "readers") == ["one"]
            await one.told(3)
            assert len(two.notices) == 1

            await two.beat("readers", subscription("Orders"))
            await one.told(4)
            await two.close()  # without a word
            await until_gone(broker, "readers", "two")
            assert await one.told(5) == ["readers"] * 5
            await one.close()
            await until_gone(broker, "readers", "one")
            assert await ids(broker, "readers") == ResponseCode.SYSTEM_ERROR
            assert not broker.state.clients.consumers

    simulated.run(main())


def test_a_heartbeat_of_the_cpp_client(tmp_path: Path) -> None:
    """It sends enums as ordinals, and longs as text."""

    async def main() -> None:
        async with running(tmp_path) as broker:
            one = Consumer(broker, "one")
            topic = {
                "classFilterMode": False,
                "codeSet": None,
                "subString": "*",
                "subVersion": "1763813000000",
                "tagsSet": None,
                "topic": "Orders",
            }
            group = {
                "consumeFromWhere": 4,
                "consumeType": 1,
                "groupName": "readers",
                "messageModel": 1,
                "subscriptionDataSet": [topic],
            }
            beat = {
                "clientID": "one",
                "consumerDataSet": [group],
                "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
            }
            answer = await one.ask(RequestCode.HEART_BEAT, body=json.dumps(beat).encode())
            assert answer.code == ResponseCode.SUCCESS
            found = broker.state.clients.consumers["readers"]
            assert found.consume_type == "CONSUME_PASSIVELY"
            assert found.message_model == "CLUSTERING"
            assert found.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
            assert found.subscriptions["Orders"].sub_version == 1763813000000
            await one.close()

    simulated.run(main())


def test_a_heartbeat_makes_the_group_and_its_retry_topic(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            one = Consumer(broker)
            await one.beat("readers", subscription("Orders"), unitMode=True)
            topic = broker.state.topics.get("%RETRY%readers")
            assert topic is not None
            assert (topic.read_queue_nums, topic.perm, topic.topic_sys_flag) == (1, 6, 2)
            assert "readers" in broker.state.groups
            answer = await one.beat("../../x", subscription("Orders"))
            assert answer.code == ResponseCode.SUCCESS
            assert "../../x" not in broker.state.clients.consumers
            assert "%RETRY%../../x" not in broker.state.topics
            await one.close()

    simulated.run(main())


def test_subscriptions(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            one, two = Consumer(broker, "one"), Consumer(broker, "two")
            await one.beat("readers", subscription("Orders", "a"), subscription("Old"))
            await two.beat("readers", subscription("Orders", "b", 0))
            group = broker.state.clients.consumers["readers"]
            found = group.subscriptions
            assert list(found) == ["Orders"], "the last heartbeat says which topics"
            assert found["Orders"].sub_string == "a", "an older version does not replace a newer"
            assert run_at_once(broker.state.clients.groups_of("Orders")) == {"readers"}
            assert run_at_once(broker.state.clients.groups_of("Old")) == set()
            await one.beat("readers", subscription("Orders", "c", 2))
            assert group.subscriptions["Orders"].sub_string == "c"
            await one.close()
            await two.close()

    simulated.run(main())


def test_who_broadcasts_is_told_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            one, two = Consumer(broker, "one"), Consumer(broker, "two")
            await one.beat("all", subscription("Orders"), messageModel="BROADCASTING")
            await two.beat("all", subscription("Orders"), messageModel="BROADCASTING")
            await two.beat("some", subscription("Orders"))
            assert await two.told(1) == ["some"]
            quiet = broker.state.groups.get_or_make("quiet")
            assert quiet is not None
            broker.state.groups.put(
                msgspec.structs.replace(quiet, notify_consumer_ids_changed_enable=False)
            )
            await one.beat("quiet", subscription("Orders"))
            await one.beat("loud", subscription("Orders"))
            assert await one.told(1) == ["loud"]
            await one.close()
            await two.close()

    simulated.run(main())


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, {"heartbeatFingerprint": 7}, "false"),
        ({"heartbeatFingerprint": 7}, {"heartbeatFingerprint": 7, "withoutSub": True}, "false"),
        ({"heartbeatFingerprint": 7}, {"heartbeatFingerprint": 8, "withoutSub": True}, "true"),
        # Of a client that was here before the broker started anew
        (None, {"heartbeatFingerprint": 7, "withoutSub": True}, "true"),
        ({"heartbeatFingerprint": 7}, {}, "true"),
    ],
)
def test_fingerprints(
    tmp_path: Path, before: dict[str, object] | None, now: dict[str, object], expected: str
) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            one = Consumer(broker)
            if before is not None:
                await one.beat("readers", subscription("Orders"), **before)
            told = [] if "withoutSub" in now else [subscription("Orders")]
            answer = await one.beat("readers", *told, **now)
            assert answer.fields["IS_SUB_CHANGE"] == expected
            if before and "withoutSub" in now:
                assert "Orders" in broker.state.clients.consumers["readers"].subscriptions
            await one.close()

    simulated.run(main())


def test_producers(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            clients = broker.state.clients
            one, two = Consumer(broker, "one"), Consumer(broker, "two")
            for client in (one, two):
                body = heartbeat(client.client_id, "readers")
                body |= {"producerDataSet": [{"groupName": "writers"}], "consumerDataSet": []}
                await client.ask(RequestCode.HEART_BEAT, None, json.dumps(body).encode())
            turns = [clients.producer("writers") for _ in range(4)]
            assert [turn.client_id for turn in turns if turn] in (
                ["one", "two", "one", "two"],
                ["two", "one", "two", "one"],
            )
            assert clients.producer_with_id("two") is not None
            assert clients.producer("nobody") is None
            await one.ask(
                RequestCode.UNREGISTER_CLIENT,
                UnregisterClientHeader(client_id="one", producer_group="writers"),
            )
            assert [client.client_id for client in clients.producers["writers"]] == ["two"]
            assert clients.producer_with_id("one") is None
            await one.close()
            await two.close()

    simulated.run(main())


def test_silent_clients_are_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            one, two = Consumer(broker, "one"), Consumer(broker, "two")
            await one.beat("readers", subscription("Orders"))
            await two.beat("readers", subscription("Orders"))
            silent = broker.state.clients.consumer("readers", "one")
            assert silent is not None
            silent.seen -= broker.runtime.settings.channel_expired_timeout + 1
            list(broker.state.clients.expire())
            assert await ids(broker, "readers") == ["two"]
            assert silent.peer.is_closed
            await one.close()
            await two.close()

    simulated.run(main())


@pytest.mark.parametrize(
    ("wanted", "code", "remark"),
    [
        (subscription("Orders", "a || b"), ResponseCode.SUCCESS, ""),
        (subscription("Orders", "a > 5", expressionType="SQL92"), ResponseCode.SUCCESS, ""),
        (
            subscription("Orders", "a >", expressionType="SQL92"),
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            "character 4",
        ),
        (
            subscription("Orders", "a", expressionType="SQL2"),
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            "no filters of type SQL2",
        ),
        (None, ResponseCode.SUCCESS, ""),
    ],
)
def test_check_client(tmp_path: Path, wanted: object, code: int, remark: str) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            body = json.dumps({"clientId": "c", "group": "g", "subscriptionData": wanted}).encode()
            answer = await broker.ask(RequestCode.CHECK_CLIENT_CONFIG, None, body)
            assert answer.code == code
            assert remark in (answer.remark or "")

    simulated.run(main())


def test_sql_may_be_switched_off(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, enablePropertyFilter=False) as broker:
            wanted = subscription("Orders", "a > 5", expressionType="SQL92")
            body = json.dumps({"subscriptionData": wanted}).encode()
            answer = await broker.ask(RequestCode.CHECK_CLIENT_CONFIG, None, body)
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "does not support" in (answer.remark or "")

    simulated.run(main())


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"consumerDataSet":[{"groupName":{}}]}'])
def test_malformed_heartbeats(tmp_path: Path, body: bytes) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            answer = await broker.ask(RequestCode.HEART_BEAT, None, body)
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "Heartbeat" in (answer.remark or "")

    simulated.run(main())
