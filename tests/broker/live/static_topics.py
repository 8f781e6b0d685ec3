"""How long a broker waits for another one's part of a static topic's queue."""

from __future__ import annotations

import asyncio

from mqlake.protocol.bodies.route import BrokerData, ClusterInfo
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.offsets import QueueHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from tests.broker.live.observing import change, observes, until
from tests.broker.running import Running, running
from tests.broker.static_topics.pairs import TOPIC, A, item, mapping, put


class Silent:
    """A name server, and the broker "silent" that it names, which answers nothing."""

    def __init__(self) -> None:
        self.address = ""
        codes = {
            RequestCode.REGISTER_BROKER: self._done,
            RequestCode.UNREGISTER_BROKER: self._done,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster,
            RequestCode.GET_MIN_OFFSET: self._nothing,
        }
        self.server = RemotingServer([Route(code, serve) for code, serve in codes.items()])

    def _done(self, _peer: Peer, request: Command) -> Command:
        return response(request)

    def _cluster(self, _peer: Peer, request: Command) -> Command:
        broker = BrokerData("c", "silent", {0: self.address})
        return response(request, body=encode_body(ClusterInfo({"silent": broker})))

    def _nothing(self, _peer: Peer, _request: Command) -> None:
        return None


@observes("forwardTimeout")
async def forward_timeout(like: Running) -> None:
    names = Silent()
    names.address = f"127.0.0.1:{await names.server.start('127.0.0.1', 0)}"
    path = like.runtime.settings.store_path / "other"
    try:
        async with running(path, namesrvAddr=names.address, forwardTimeout=600_000) as broker:
            await put(broker, mapping(A, {0: [item("silent"), item(A, gen=1, logic=100)]}))
            await change(broker, forwardTimeout=20)
            header = QueueHeader(topic=TOPIC, queue_id=0)
            asked = asyncio.create_task(broker.ask(RequestCode.GET_MIN_OFFSET, header))
            try:
                await until(asked.done)
                assert asked.result().code == ResponseCode.SYSTEM_ERROR
                assert "silent" in (asked.result().remark or "")
            finally:
                asked.cancel()
    finally:
        await names.server.stop(0.1)
