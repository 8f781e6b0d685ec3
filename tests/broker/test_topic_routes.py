"""A broker answers which queues of a topic it has."""

from __future__ import annotations

from pathlib import Path

from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from tests import simulated
from tests.broker.running import running


def test_the_route_is_that_of_the_broker_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, brokerPermission="4") as broker:
            broker.state.topics.put(Topic("T", read_queue_nums=3, write_queue_nums=2, perm=6))
            code = RequestCode.GET_ROUTEINFO_BY_TOPIC
            answer = await broker.ask(code, GetRouteInfoHeader(topic="T"))
            route = decode_body(TopicRouteData, answer.body)
            (queues,), (data,) = route.queue_datas, route.broker_datas
            assert (queues.broker_name, queues.read_queue_nums) == ("broker-a", 3)
            assert (queues.write_queue_nums, queues.perm) == (2, 4)
            assert data.broker_addrs == {0: broker.address}
            answer = await broker.ask(code, GetRouteInfoHeader(topic="missing"))
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST

    simulated.run(run())
