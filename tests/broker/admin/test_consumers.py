"""Where groups stand, who is connected, and what is passed on to consumers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from mqlake.protocol.bodies.connections import (
    ConsumerConnections,
    GroupList,
    ProducerConnections,
    ProducerTable,
)
from mqlake.protocol.bodies.route import TopicList
from mqlake.protocol.bodies.stats import (
    BrokerConsumeStats,
    ConsumeStats,
    QueueTimeSpan,
    ResetOffsets,
)
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.admin import (
    BrokerConsumeStatsHeader,
    CloneOffsetHeader,
    ConsumerConnectionsHeader,
    ConsumerHeader,
    ConsumerStatusHeader,
    ConsumeStatsHeader,
    CorrectionOffsetHeader,
    GroupNameHeader,
    ProducerConnectionsHeader,
    ResetOffsetHeader,
    TopicGroupHeader,
    TopicNameHeader,
)
from mqlake.remoting.connection import Peer
from tests import simulated
from tests.broker.admin.asking import done, refused, wanted
from tests.broker.clients_of import KnownClient, known_client
from tests.broker.running import Running, running, to


async def prepare(broker: Running) -> None:
    """Have a topic with three messages in queue 1, of which group g has consumed two."""
    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Orders"))
    for _ in range(3):
        await broker.send(to("Orders", queue_id=1))
    broker.state.store.core.tick()
    broker.state.store.core.config.consumer_offsets.commit("g", "Orders", 1, 2)
    broker.state.groups.get_or_make("g")


def test_how_far_a_group_is(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await prepare(broker)
            times = [record.store_timestamp for record in broker.records("Orders", 1)]
            code = RequestCode.GET_CONSUME_STATS
            answer = await done(broker, code, ConsumeStatsHeader(consumer_group="g"))
            stats = ConsumeStats.decode(answer.body)
            by_id = {queue.queue_id: at for queue, at in stats.offset_table.items()}
            assert (by_id[1].broker_offset, by_id[1].consumer_offset, by_id[1].lag) == (3, 2, 1)
            assert by_id[1].last_timestamp == times[1]
            assert (by_id[0].lag, by_id[0].last_timestamp) == (0, 0)
            assert (stats.lag, stats.in_flight) == (1, 0)
            header = ConsumeStatsHeader(consumer_group="g", topic="Nothing")
            assert not ConsumeStats.decode((await done(broker, code, header)).body).offset_table

            code = RequestCode.GET_BROKER_CONSUME_STATS
            answer = await done(broker, code, BrokerConsumeStatsHeader())
            whole = BrokerConsumeStats.decode(answer.body)
            assert [each.lag for each in whole.groups["g"]] == [1]
            answer = await done(broker, code, BrokerConsumeStatsHeader(is_order=True))
            assert BrokerConsumeStats.decode(answer.body).groups["g"] == []

            header = TopicGroupHeader(topic="Orders", group="g")
            answer = await done(broker, RequestCode.QUERY_CONSUME_TIME_SPAN, header)
            listed = decode_body(dict[str, list[QueueTimeSpan]], answer.body)
            spans = listed["consumeTimeSpanSet"]
            span = spans[1]
            found = (span.min_time_stamp, span.consume_time_stamp, span.max_time_stamp)
            assert found == (times[0], times[1], times[2])
            assert span.delay_time >= 0
            assert spans[0].max_time_stamp == 0

    simulated.run(check())


def test_who_consumes_what(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await prepare(broker)
            offsets = broker.state.store.config.consumer_offsets
            offsets.commit_pull("only-pulled", "Orders", 0, 1)
            async with known_client(broker, {}, "c1", groups="online"):
                code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
                answer = await done(broker, code, TopicNameHeader(topic="Orders"))
                assert decode_body(GroupList, answer.body).group_list == ["g", "online"]
                code = RequestCode.QUERY_TOPICS_BY_CONSUMER
                answer = await done(broker, code, GroupNameHeader(group="g"))
                assert decode_body(TopicList, answer.body).topic_list == ["Orders"]
                code = RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER
                header = TopicGroupHeader(topic="Orders", group="online")
                answer = await done(broker, code, header)
                found = json.loads(bytes(answer.body))["subscriptionData"]
                assert (found["topic"], found["subString"]) == ("Orders", "*")
                header = TopicGroupHeader(topic="Orders", group="g")
                answer = await done(broker, code, header)
                assert "subscriptionData" not in json.loads(bytes(answer.body))

    simulated.run(check())


def test_a_group_goes_on_elsewhere(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await prepare(broker)
            second = broker.records("Orders", 1)[1].store_timestamp
            code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET

            async def reset(**fields: int) -> dict[int, int]:
                header = ResetOffsetHeader(topic="Orders", group="g", timestamp=0)
                for name, value in fields.items():
                    setattr(header, name, value)
                table = ResetOffsets.decode((await done(broker, code, header)).body).offset_table
                return {queue.queue_id: offset for queue, offset in table.items()}

            offsets = broker.state.store.core.config.consumer_offsets
            assert await reset(timestamp=-1) == {0: 0, 1: 3}
            assert offsets.query("g", "Orders", 1) == 3
            at = await reset(timestamp=second)
            assert at[1] in (0, 1), "messages of one millisecond lie together"
            assert await reset(queue_id=1, offset=2) == {1: 2}
            wrong = ResetOffsetHeader(topic="Orders", group="g", timestamp=0, queue_id=1, offset=9)
            await refused(broker, code, wrong, match="not in consume queue range [0-3]")
            wrong = ResetOffsetHeader(topic="Nothing", group="g", timestamp=0)
            assert await refused(broker, code, wrong, match="does not exist") == 17
            wrong = ResetOffsetHeader(topic="Orders", group="nobody", timestamp=0)
            assert await refused(broker, code, wrong, match="does not exist") == 26

            header = CloneOffsetHeader(src_group="g", dest_group="h", topic="Orders")
            await done(broker, RequestCode.CLONE_GROUP_OFFSET, header)
            assert offsets.query("h", "Orders", 1) == 2
            offsets.commit("g", "Orders", 1, 1)
            slowest = CorrectionOffsetHeader(compare_group="h", topic="Orders")
            answer = await done(broker, RequestCode.QUERY_CORRECTION_OFFSET, slowest)
            assert b'"correctionOffsets":{' in bytes(answer.body)
            assert b"1:1" in bytes(answer.body), "keys are numbers, as fastjson writes them"

    simulated.run(check())


def test_clients_are_listed(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            code = RequestCode.GET_CONSUMER_CONNECTION_LIST
            header = ConsumerConnectionsHeader(consumer_group="g")
            found = await refused(broker, code, header, match="not online")
            assert found == ResponseCode.CONSUMER_NOT_ONLINE
            async with known_client(broker, {}, "c1", producers="p", groups="g"):
                online = decode_body(ConsumerConnections, (await done(broker, code, header)).body)
                (client,) = online.connection_set
                assert (client.client_id, client.language) == ("c1", "PYTHON")
                assert client.client_addr.startswith("127.0.0.1:")
                assert set(online.subscription_table) == {"Orders"}
                assert online.message_model == "CLUSTERING"
                answer = await done(
                    broker,
                    RequestCode.GET_PRODUCER_CONNECTION_LIST,
                    ProducerConnectionsHeader(producer_group="p"),
                )
                producers = decode_body(ProducerConnections, answer.body).connection_set
                assert [each.client_id for each in producers] == ["c1"]
                answer = await done(broker, RequestCode.GET_ALL_PRODUCER_INFO)
                (info,) = decode_body(ProducerTable, answer.body).data["p"]
                assert info.remote_ip.startswith("/127.0.0.1:")
            nobody = ProducerConnectionsHeader(producer_group="nobody")
            code = RequestCode.GET_PRODUCER_CONNECTION_LIST
            await refused(broker, code, nobody, match="not exist")

    simulated.run(check())


def test_questions_are_passed_on_to_a_consumer(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await prepare(broker)
            codes = {
                RequestCode.GET_CONSUMER_RUNNING_INFO: ResponseCode.SUCCESS,
                RequestCode.CONSUME_MESSAGE_DIRECTLY: ResponseCode.SUCCESS,
                RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: ResponseCode.SUCCESS,
            }
            async with known_client(broker, codes, "c1", groups="g") as client:
                header = ConsumerHeader(consumer_group="g", client_id="c1")
                await done(broker, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
                assert (await client.next()).fields["clientId"] == "c1"

                message = broker.records("Orders", 1)[0]
                header = ConsumerHeader(
                    consumer_group="g", client_id="c1", msg_id=message.message_id
                )
                await done(broker, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
                asked = await client.next()
                assert len(asked.body) == message.size
                assert asked.fields["brokerName"] == "broker-a"

                code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
                status = ConsumerStatusHeader(topic="Orders", group="g")
                answer = await done(broker, code, status)
                assert (await client.next()).fields["topic"] == "Orders"
                assert bytes(answer.body) == b'{"consumerTable":{}}'

                gone = ConsumerHeader(consumer_group="g", client_id="c2")
                code = RequestCode.GET_CONSUMER_RUNNING_INFO
                await refused(broker, code, gone, match="not online")
                wrong = ConsumerHeader(consumer_group="g", client_id="c1", msg_id="xyz")
                code = RequestCode.CONSUME_MESSAGE_DIRECTLY
                await refused(broker, code, wrong, match="")

    simulated.run(check())


class Silent(KnownClient):
    """A client that never answers."""

    async def _answer(self, _peer: Peer, asked: Command) -> Command:
        self.asked.put_nowait(asked)
        await asyncio.Event().wait()
        raise AssertionError


class Exact(KnownClient):
    """A client that says where it is."""

    def _answer(self, _peer: Peer, asked: Command) -> Command:
        return response(asked, body=b'{"messageQueueTable":{{"queueId":0}:7}}')


def test_a_consumer_that_does_not_answer_hides_the_offsets_of_no_other(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await prepare(broker)
            code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
            clients = {"c1": Silent(broker, {code: 0}), "c2": Exact(broker, {code: 0})}
            for name, client in clients.items():
                await client.beat(name, "", "g")
            header = ConsumerStatusHeader(topic="Orders", group="g")
            answer = await done(broker, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
            assert bytes(answer.body) == b'{"consumerTable":{"c2":{{"queueId":0}:7}}}'
            assert clients["c1"].asked.qsize() == 1
            for client in clients.values():
                await client.close()

    simulated.run(check())
