"""What clients may create, and what they are told when it is too much."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mqlake.broker.admin.offsets import OffsetAdmin
from mqlake.broker.state.topics import MOST_QUEUES
from mqlake.formats.config.subscription_group import SimpleSubscription, SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData, Subscription
from mqlake.protocol.bodies.pop import RequestMode
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import (
    CloneOffsetHeader,
    ConsumerConnectionsHeader,
    ConsumeStatsHeader,
    ResetOffsetHeader,
)
from mqlake.protocol.headers.pop import AckHeader
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.remoting.slices import Job
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from tests import simulated
from tests.broker.admin.asking import done, refused, wanted
from tests.broker.asking import commit, lock
from tests.broker.pop import popping
from tests.broker.pull.pulls import GROUP as READERS
from tests.broker.pull.pulls import fill, polls, pull, start_pull
from tests.broker.running import Running, running, to
from tests.until import until

GROUP = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP


def test_topics_and_groups(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            settings = {
                "maxTopicNums": len(broker.state.topics) + 1,
                "maxSubscriptionGroupNums": len(broker.state.groups) + 1,
            }
            body = "".join(f"{name}={value}\n" for name, value in settings.items()).encode()
            await done(broker, RequestCode.UPDATE_BROKER_CONFIG, body=body)
            assert (await broker.send(to("One"))).code == ResponseCode.SUCCESS
            answer = await broker.send(to("Two"))
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "maxTopicNums" in (answer.remark or "")
            create = RequestCode.UPDATE_AND_CREATE_TOPIC
            await refused(broker, create, wanted("Two"), match="maxTopicNums")
            await done(broker, create, wanted("One"))

            await done(broker, GROUP, body=encode_body(SubscriptionGroup(group_name="one")))
            two = encode_body(SubscriptionGroup(group_name="two"))
            await refused(broker, GROUP, body=two, match="maxSubscriptionGroupNums")
            found = await pull(broker, 0, topic="One", consumer_group="two")
            assert "maxSubscriptionGroupNums" in found.remark
            beat = encode_body(Heartbeat("c", consumer_data_set=[ConsumerData("two")]))
            await refused(
                broker, RequestCode.HEART_BEAT, body=beat, match="maxSubscriptionGroupNums"
            )
            beat = encode_body(Heartbeat("c", consumer_data_set=[ConsumerData("one")]))
            await done(broker, RequestCode.HEART_BEAT, body=beat)
            assert "%RETRY%one" in broker.state.topics, "of a group that there is"

    simulated.run(main())


async def beat(broker: Running, data: Heartbeat, match: str) -> None:
    await refused(broker, RequestCode.HEART_BEAT, body=encode_body(data), match=match)


def test_heartbeats(tmp_path: Path) -> None:
    settings = {
        "maxHeartbeatSize": 65_536,
        "maxGroupsPerHeartbeat": 10,
        "maxSubscriptionsPerGroup": 20,
        "maxSubscriptionsSize": 65_536,
        "maxClientNums": 12,
        "maxAddressShare": 100,
    }

    async def main() -> None:
        async with running(tmp_path, **settings) as broker:
            many = [ProducerData(f"g{number}") for number in range(11)]
            await beat(broker, Heartbeat("c", many), "maxGroupsPerHeartbeat")
            await beat(broker, Heartbeat("x" * 65_536), "maxHeartbeatSize")
            await beat(broker, Heartbeat("x" * 2000), "clientID")
            await beat(broker, Heartbeat("c", [ProducerData("x" * 256)]), "producer group")

            topics = [Subscription(f"T{number}") for number in range(21)]
            data = Heartbeat(
                "c", consumer_data_set=[ConsumerData("g", subscription_data_set=topics)]
            )
            await beat(broker, data, "maxSubscriptionsPerGroup")
            long = [Subscription("T", "x" * 40_000)]
            data.consumer_data_set = [ConsumerData("g", subscription_data_set=long)]
            await done(broker, RequestCode.HEART_BEAT, body=encode_body(data))
            await done(broker, RequestCode.HEART_BEAT, body=encode_body(data))
            data.consumer_data_set = [ConsumerData("h", subscription_data_set=long)]
            await beat(broker, data, "maxSubscriptionsSize")
            # One connection may be in ten groups, however many heartbeats name them.
            await done(broker, RequestCode.HEART_BEAT, body=encode_body(Heartbeat("c", many[:9])))
            data = Heartbeat("c", [ProducerData("one more")])
            await beat(broker, data, "maxGroupsPerHeartbeat")
            other = Running(broker.broker)
            await done(other, RequestCode.HEART_BEAT, body=encode_body(Heartbeat("o", many[:2])))
            await beat(other, Heartbeat("o", many[2:3]), "maxClientNums")
            await other.client.close()

    simulated.run(main())


def test_offsets_and_locks(tmp_path: Path) -> None:
    settings = {
        "maxConsumerOffsetNums": 1000,
        "maxLockNums": 10,
        "maxLockBatchSize": 8,
        "maxAddressShare": 100,
    }

    async def main() -> None:
        async with running(tmp_path, **settings) as broker:
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("T"))
            await done(broker, GROUP, body=encode_body(SubscriptionGroup(group_name="g")))
            for queue_id in range(1000):
                await commit(broker, queue_id)
            remark = await commit(broker, 1000)
            assert "maxConsumerOffsetNums" in remark
            assert not await commit(broker, 7), "one that there is"
            assert "not between 0 and" in await commit(broker, -1)
            assert "not between 0 and" in await commit(broker, MOST_QUEUES)

            assert "maxLockBatchSize" in await lock(broker, 9)
            assert not await lock(broker, 8)
            assert not await lock(broker, 2, 8)
            assert "maxLockNums" in await lock(broker, 1, 10)
            assert not await lock(broker, 8), "once more"

    simulated.run(main())


def test_offsets_of_pulls(tmp_path: Path) -> None:
    commits = {"sys_flag": HAS_SUBSCRIPTION | COMMITS_OFFSET}

    async def main() -> None:
        async with running(tmp_path, maxConsumerOffsetNums=1000) as broker:
            await fill(broker, 4)
            offsets = broker.state.store.core.config.consumer_offsets
            await pull(broker, 0, commit_offset=1, **commits)
            fill_offsets(offsets)
            found = await pull(broker, 2, consumer_group="other", commit_offset=2, **commits)
            assert found.bodies == [b"2", b"3"], "it is served all the same"
            assert offsets.query("other", "Orders", 0) is None
            assert offsets.query_pull("other", "Orders", 0) is None
            await pull(broker, 2, commit_offset=2, max_msg_nums=1, **commits)
            assert offsets.query(READERS, "Orders", 0) == 2, "one that there is"
            assert offsets.query_pull(READERS, "Orders", 0) == 3
            assert len(offsets) == 1000

    simulated.run(main())


def test_modes_of_groups(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, maxAnswerEntries=1000) as broker:
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("T"))
            code = RequestCode.SET_MESSAGE_REQUEST_MODE
            for number in range(1000):
                await done(broker, code, body=encode_body(RequestMode("T", f"g{number}", "POP", 0)))
            other = encode_body(RequestMode("T", "other", "POP", 0))
            await refused(broker, code, body=other, match="maxAnswerEntries")
            await done(broker, code, body=encode_body(RequestMode("T", "g0", "PULL", 0)))
            answer = await done(broker, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
            modes = json.loads(bytes(answer.body))["messageRequestModeMap"]["T"]
            assert len(modes) == 1000
            assert modes["g0"]["mode"] == "PULL"

    simulated.run(main())


def fill_offsets(offsets: ConsumerOffsetTable) -> None:
    """Commit so many that there are a thousand."""
    for queue_id in range(1000 - len(offsets)):
        offsets.commit("full", "Full", queue_id, 1)


def test_offsets_that_are_reset_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reset = ResetOffsetHeader(topic="T", group="g", timestamp=-1)
    copied = RequestCode.CLONE_GROUP_OFFSET

    async def main() -> None:
        async with running(tmp_path, maxConsumerOffsetNums=1000) as broker:
            fields = wanted("T", read_queue_nums=8, write_queue_nums=8)
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
            await done(broker, GROUP, body=encode_body(SubscriptionGroup(group_name="g")))
            offsets = broker.state.store.core.config.consumer_offsets
            for queue_id in range(8):
                offsets.commit("g", "T", queue_id, 5)
                offsets.commit("h", "T", queue_id, 1)

            # Room is looked for again before each offset: others may have taken it meanwhile.
            jobs: list[Job[object]] = []
            monkeypatch.setattr(
                broker.runtime.slices, "serve", lambda _, job, **__: jobs.append(job)
            )
            (peer,) = broker.broker.peers
            routes = {
                route.code: route for route in OffsetAdmin(broker.state, broker.runtime).routes()
            }
            to_other = CloneOffsetHeader(src_group="g", dest_group="other", topic="T")
            routes[copied].handler(peer, request(copied, to_other))
            (job,) = jobs
            next(job)
            fill_offsets(offsets)
            with pytest.raises(RemotingError, match="maxConsumerOffsetNums"):
                next(job)
            monkeypatch.undo()

            await refused(broker, copied, to_other, match="maxConsumerOffsetNums")
            to_one_that_is_there = CloneOffsetHeader(src_group="g", dest_group="h", topic="T")
            await done(broker, copied, to_one_that_is_there)
            assert offsets.query_topic("h", "T") == dict.fromkeys(range(8), 5)
            await done(broker, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)
            assert offsets.query_topic("g", "T") == dict.fromkeys(range(8), 0)
            assert len(offsets) == 1000

    simulated.run(main())


def test_offsets_of_pops(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, maxConsumerOffsetNums=1000) as broker:
            await popping.send(broker, "a", "b")
            offsets = broker.state.store.core.config.consumer_offsets
            (first,) = await popping.pop(broker, max_msg_nums=1)
            fill_offsets(offsets)
            (second,) = await popping.pop(broker)
            await popping.acknowledge(broker, first, second)
            assert await popping.pop(broker, poll_time=300) == [], "it may wait"
            assert "maxConsumerOffsetNums" in await refused_pop(broker, "other", -1)
            assert "maxConsumerOffsetNums" in await refused_pop(broker, "other", 0)
            nothing = await popping.pop(broker, consumer_group="other", queue_id=1)
            assert nothing == [], "there is nothing to be taken, and no offset"
            for order in (True, False):
                receipt = first.receipt.split(" ")
                receipt[3] = "999" if order else receipt[3]
                fields = AckHeader(
                    consumer_group="other",
                    topic=popping.TOPIC,
                    queue_id=0,
                    extra_info=" ".join(receipt),
                    offset=0,
                )
                answer = await broker.ask(RequestCode.ACK_MESSAGE, fields)
                assert ("maxConsumerOffsetNums" in (answer.remark or "")) == order
            waiting = popping.header(consumer_group="other", queue_id=1, poll_time=60_000)
            waits = asyncio.create_task(broker.ask(RequestCode.POP_MESSAGE, waiting))
            await asyncio.sleep(0)  # the pop is written before the send
            await popping.send(broker, "c", queue_id=1)
            assert "maxConsumerOffsetNums" in ((await waits).remark or "")
            assert len(offsets) == 1000
            broker.state.store.core.durability.sync_log()
            await until(lambda: offsets.query(popping.GROUP, popping.TOPIC, 0) == 2)

    simulated.run(main())


async def refused_pop(broker: Running, group: str, queue_id: int) -> str:
    fields = popping.header(consumer_group=group, queue_id=queue_id, poll_time=60_000)
    answer = await broker.ask(RequestCode.POP_MESSAGE, fields)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    return answer.remark or ""


def test_pulls_that_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, pullPollingSize=4, maxPullPollingSize=6) as broker:
            await fill(broker, 1)
            one, two, three = (Running(broker.broker) for _ in range(3))
            first = [start_pull(one, 1, 60_000) for _ in range(4)]
            await until(lambda: len(polls(broker)) == 4)
            assert "pullPollingSize" in (await start_pull(one, 1, 60_000)).remark
            others = [start_pull(two, 1, 60_000) for _ in range(2)]
            await until(lambda: len(polls(broker)) == 6)
            others.append(start_pull(three, 1, 60_000))
            ended, _ = await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            (evicted,) = ended
            assert "maxPullPollingSize" in evicted.result().remark, "the greediest makes room"
            assert (await pull(broker, 0)).bodies == [b"0"], "others are served"
            await fill(broker, 1, 1)
            found = await asyncio.gather(*(each for each in first if each is not evicted), *others)
            assert [each.bodies for each in found] == [[b"1"]] * 6
            for each in (one, two, three):
                await each.client.close()

    simulated.run(main())


def test_answers_that_would_be_too_long(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, maxAnswerEntries=1000) as broker:
            create = RequestCode.UPDATE_AND_CREATE_TOPIC
            await done(broker, create, wanted("T", read_queue_nums=1001))
            asked = ConsumeStatsHeader(consumer_group="g", topic="T")
            code = RequestCode.GET_CONSUME_STATS
            await refused(broker, code, asked, match="maxAnswerEntries")
            data = Heartbeat("c", consumer_data_set=[ConsumerData("g")])
            await done(broker, RequestCode.HEART_BEAT, body=encode_body(data))
            asked = ConsumerConnectionsHeader(consumer_group="g")
            answer = await done(broker, RequestCode.GET_CONSUMER_CONNECTION_LIST, asked)
            assert len(json.loads(bytes(answer.body))["connectionSet"]) == 1

    simulated.run(main())


@pytest.mark.parametrize("fields", [{"perm": 8}, {"perm": -1}, {"topic_filter_type": "x" * 65}])
def test_topics_that_cannot_be(tmp_path: Path, fields: dict[str, object]) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            create = RequestCode.UPDATE_AND_CREATE_TOPIC
            await refused(broker, create, wanted("T", **fields), match="the topic[T]")

    simulated.run(main())


def test_groups_and_lists_that_are_too_long(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, maxAdminBodySize=65_536) as broker:
            long = [SimpleSubscription("T", "TAG", "x" * 20_000)]
            group = SubscriptionGroup(group_name="g", subscription_data_set=long)
            await refused(broker, GROUP, body=encode_body(group), match="maxGroupConfigSize")
            topics = [Topic(f"T{number}") for number in range(1000)]
            body = encode_body({"topicConfigList": topics})
            code = RequestCode.UPDATE_AND_CREATE_TOPIC_LIST
            await refused(broker, code, body=body, match="maxAdminBodySize")

    simulated.run(main())


def test_what_files_of_a_store_state(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir(parents=True)
    topic = {"topicName": "T", "readQueueNums": 2**31 - 1, "writeQueueNums": -5, "perm": 6}
    group = {"groupName": "g", "retryQueueNums": 2**31 - 1}
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": {"T": topic}}))
    (config / "subscriptionGroup.json").write_text(
        json.dumps({"subscriptionGroupTable": {"g": group}})
    )

    async def main() -> None:
        async with running(tmp_path) as broker:
            found = broker.state.topics.get("T")
            assert found is not None
            assert (found.read_queue_nums, found.write_queue_nums) == (MOST_QUEUES, 0)
            kept = broker.state.groups.get("g")
            assert kept is not None
            assert kept.retry_queue_nums == MOST_QUEUES

    simulated.run(main())
