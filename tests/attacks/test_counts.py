"""Counts that a client, or a file of an existing store, may state as it likes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.admin import (
    BrokerConsumeStatsHeader,
    ConsumeStatsHeader,
    ResetOffsetHeader,
    TopicGroupHeader,
    TopicNameHeader,
)
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from tests.attacks.broker_process import attacked
from tests.attacks.flood import attackers
from tests.attacks.size import part
from tests.broker.admin.asking import wanted

MOST = 2**31 - 1
GROUPS = part(10_000)
"""Groups of consumers in a heartbeat, and of producers."""


def update_group(queues: int) -> Command:
    group = SubscriptionGroup(group_name="attacker", retry_queue_nums=queues)
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    return request(code, None, encode_body(group))


def beat(*groups: str) -> Command:
    data = Heartbeat("attacker", consumer_data_set=[ConsumerData(group) for group in groups])
    return request(RequestCode.HEART_BEAT, None, encode_body(data))


def questions(topic: str, group: str) -> list[Command]:
    """Return the questions whose answers list all queues of a topic."""
    span = TopicGroupHeader(topic=topic, group=group)
    reset = ResetOffsetHeader(topic=topic, group=group, timestamp=-1)
    return [
        request(RequestCode.GET_TOPIC_STATS_INFO, TopicNameHeader(topic=topic)),
        request(
            RequestCode.GET_CONSUME_STATS, ConsumeStatsHeader(consumer_group=group, topic=topic)
        ),
        request(RequestCode.GET_BROKER_CONSUME_STATS, BrokerConsumeStatsHeader()),
        request(RequestCode.QUERY_CONSUME_TIME_SPAN, span),
        request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset),
    ]


def test_a_group_with_two_billion_retry_queues(tmp_path: Path) -> None:
    with attacked(tmp_path, "Create a group with 2 billion retry queues") as attack:

        async def main() -> None:
            async with attackers(attack) as (one,):
                assert "maxTopicQueueNums" in await one.ask(update_group(MOST))
                assert not await one.ask(beat("attacker"))
                for asked in questions("%RETRY%attacker", "attacker"):
                    assert not await one.ask(asked)

        asyncio.run(main())
    attack.toll.check()


def test_a_topic_with_two_billion_queues(tmp_path: Path) -> None:
    with attacked(tmp_path, "Create a topic with 2 billion queues") as attack:

        async def main() -> None:
            async with attackers(attack) as (one,):
                for field in ("read_queue_nums", "write_queue_nums"):
                    header = wanted("Attacked", **{field: MOST})
                    asked = request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
                    assert "maxTopicQueueNums" in await one.ask(asked)
                header = wanted("Attacked", read_queue_nums=4096, write_queue_nums=4096)
                assert not await one.ask(request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))
                assert not await one.ask(update_group(1))
                for _ in range(5):
                    for asked in questions("Attacked", "attacker"):
                        assert not await one.ask(asked)
                far = UpdateConsumerOffsetHeader(
                    consumer_group="attacker", topic="Attacked", queue_id=MOST, commit_offset=1
                )
                asked = request(RequestCode.UPDATE_CONSUMER_OFFSET, far)
                assert "not between 0 and" in await one.ask(asked)

        asyncio.run(main())
    attack.toll.check()


def test_files_of_a_store_that_state_two_billion_queues(tmp_path: Path) -> None:
    config = tmp_path / "store" / "config"
    config.mkdir(parents=True)
    topic = {"topicName": "Attacked", "readQueueNums": MOST, "writeQueueNums": MOST, "perm": 6}
    group = {"groupName": "attacker", "retryQueueNums": MOST}
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": {"Attacked": topic}}))
    (config / "subscriptionGroup.json").write_text(
        json.dumps({"subscriptionGroupTable": {"attacker": group}})
    )
    with attacked(tmp_path, "Start on a store whose files state 2 billion queues") as attack:

        async def main() -> None:
            async with attackers(attack) as (one,):
                assert not await one.ask(beat("attacker"))
                for name in ("Attacked", "%RETRY%attacker"):
                    for asked in questions(name, "attacker"):
                        remark = await one.ask(asked)
                        assert not remark or "maxAnswerEntries" in remark

        asyncio.run(main())
    attack.toll.check()


@pytest.mark.parametrize("most", [1000, 30_000])
def test_heartbeats_of_very_many_groups(tmp_path: Path, most: int) -> None:
    """They are refused, or where the setting allows them, taken a slice at a time."""
    with attacked(
        tmp_path,
        f"Send a heartbeat with {2 * GROUPS:,} groups; the limit is {most:,}",
        maxGroupsPerHeartbeat=most,
        maxHeartbeatSize=8 << 20,
        maxAddressShare=100,
    ) as attack:

        async def main() -> None:
            consumers = [ConsumerData(f"attacker-{number}") for number in range(GROUPS)]
            producers = [ProducerData(f"attacker-{number}") for number in range(GROUPS)]
            data = Heartbeat("attacker", producers, consumers)
            async with attackers(attack) as (one,):
                remark = await one.ask(request(RequestCode.HEART_BEAT, None, encode_body(data)))
                assert ("maxGroupsPerHeartbeat" in remark) == (most < 2 * GROUPS)
                assert not await one.ask(beat("attacker")), "the connection is served as before"
            # And all of them leave with the connection.
            async with attackers(attack) as (one,):
                assert not await one.ask(beat("attacker"))

        asyncio.run(main())
    attack.toll.check()
