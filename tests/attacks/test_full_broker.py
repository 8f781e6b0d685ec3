"""Requests that list everything, to a broker that has as much as limits allow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.admin import (
    BrokerConsumeStatsHeader,
    DeleteGroupHeader,
    TopicNameHeader,
)
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from tests.attacks.broker_process import Attack, attacked
from tests.attacks.flood import attackers
from tests.attacks.size import part

MEMORY = 768 << 20
"""Bytes: what the files of such a store hold takes 450 MB before anybody asks."""
TOPICS, GROUPS, OFFSETS = part(49_000), part(19_000), part(499_000)
COMMITS = part(20_000)
"""Commits of each attacker: more than there is room for."""
LIMITS = {
    "maxTopicNums": part(50_000),
    "maxSubscriptionGroupNums": part(20_000),
    "maxConsumerOffsetNums": part(500_000),
    "maxAnswerEntries": part(100_000),
}
LISTS = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_ALL_PRODUCER_INFO,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    RequestCode.GET_BROKER_RUNTIME_INFO,
)


def fill(store: Path) -> None:
    """Make the files of a store that has as much as can be."""
    config = store / "config"
    config.mkdir(parents=True)
    topics = {
        name: {"topicName": name, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
        for name in (f"T{number}" for number in range(TOPICS))
    }
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    groups = {name: {"groupName": name} for name in (f"g{number}" for number in range(GROUPS))}
    (config / "subscriptionGroup.json").write_text(json.dumps({"subscriptionGroupTable": groups}))
    pairs = ((number % TOPICS, number % GROUPS) for number in range(OFFSETS // 4))
    table = {f"T{topic}@g{group}": {n: n for n in range(4)} for topic, group in pairs}
    (config / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))


def test_lists_of_everything(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    with attacked(tmp_path, "List everything on a full broker", **LIMITS) as attack:

        async def main() -> None:
            async with attackers(attack, 4) as them:
                for _ in range(2):
                    for one in them:
                        await one.send(request(code) for code in LISTS)
                        stats = request(
                            RequestCode.GET_BROKER_CONSUME_STATS, BrokerConsumeStatsHeader()
                        )
                        await one.send([stats])
                    for one in them:
                        await one.answered()
                for one in them:
                    codes = {ResponseCode.SUCCESS: 2 * len(LISTS), ResponseCode.SYSTEM_ERROR: 2}
                    assert one.codes == codes, one.remarks
                    (remark,) = one.remarks
                    assert "maxAnswerEntries" in remark, "statistics of all offsets are too many"

        asyncio.run(main())
    attack.toll.check(memory=MEMORY)


def test_offsets_of_many_groups_and_topics(tmp_path: Path) -> None:
    """They are kept every few seconds, and go with their topics and groups."""
    fill(tmp_path / "store")
    title = f"Commit {3 * COMMITS:,} offsets, and delete topics and groups, on a full broker"
    with attacked(tmp_path, title, **LIMITS) as attack:

        async def main() -> None:
            async with attackers(attack, 4) as (one, *others):
                for number, each in enumerate(others):
                    await each.send(commits(number * 100_000, COMMITS))
                for each in others:
                    await each.answered()
                assert "maxConsumerOffsetNums" in "".join(others[-1].remarks)
                for number in range(20):
                    header = TopicNameHeader(topic=f"T{number}")
                    await one.ask(request(RequestCode.DELETE_TOPIC_IN_BROKER, header))
                    header = DeleteGroupHeader(group_name=f"g{number}", clean_offset=True)
                    await one.ask(request(RequestCode.DELETE_SUBSCRIPTIONGROUP, header))
                assert not one.codes.keys() - {ResponseCode.SUCCESS}

        asyncio.run(main())
    check_offsets(attack, tmp_path / "store")


def commits(start: int, count: int) -> Iterator[Command]:
    """Yield commits of offsets, most of them new."""
    for number in range(start, start + count):
        header = UpdateConsumerOffsetHeader(
            consumer_group=f"g{number % GROUPS}",
            topic=f"T{number * 7 % TOPICS}",
            queue_id=number % 4,
            commit_offset=0,  # the end of an empty queue
        )
        yield request(RequestCode.UPDATE_CONSUMER_OFFSET, header)


def check_offsets(attack: Attack, store: Path) -> None:
    attack.toll.check(memory=MEMORY)
    assert (store / "config/consumerOffset.json").stat().st_size > part(5_000_000)
