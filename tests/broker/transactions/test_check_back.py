"""Who is asked about a transaction is told its message, and so must be allowed to end it."""

from __future__ import annotations

from pathlib import Path

from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.heartbeat import Heartbeat, ProducerData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.connection import Peer
from tests import simulated
from tests.auth.closed import CLOSED, Asking, closed
from tests.auth.test_administration import ALICE, create, grant
from tests.broker.running import PATIENCE, to
from tests.broker.transactions.half_messages import PAIRS
from tests.until import until

CLOSED_FAST = CLOSED | {
    "authorizationEnabled": "true",
    "transactionCheckInterval": 100,
    "transactionTimeOut": 1,
}

BOB = Credentials("bob", "bob-password-7")


class AskedProducer:
    """A producer of one user, and how often it was asked."""

    def __init__(self, user: Credentials) -> None:
        self.count = 0
        handlers = {RequestCode.CHECK_TRANSACTION_STATE: self._asked}
        self.client = RemotingClient(handlers, connect_timeout=PATIENCE, credentials=user)

    def _asked(self, _peer: Peer, _request: Command) -> None:
        self.count += 1

    async def ask(self, asking: Asking, asked: Command) -> None:
        answer = await self.client.request(asking.broker.address, asked, PATIENCE)
        assert answer.code == ResponseCode.SUCCESS


def test_producers_without_the_permission_are_not_asked(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path, CLOSED_FAST) as asking:
            asking.broker.state.topics.put(Topic("Orders", 4, 4))
            producers = [AskedProducer(ALICE), AskedProducer(BOB)]
            for number, user in enumerate((ALICE, BOB)):
                assert (await create(asking, user))[0] == ResponseCode.SUCCESS
                beat = Heartbeat(user.access_key, producer_data_set=[ProducerData("producers")])
                beats = request(RequestCode.HEART_BEAT, body=encode_body(beat))
                await producers[number].ask(asking, beats)
            assert (await grant(asking, "Topic:Orders", "Pub"))[0] == ResponseCode.SUCCESS
            now = asking.broker.state.store.core.clock.milliseconds()
            header = to("Orders", properties=PAIRS, sys_flag=4, born_timestamp=now)
            half = request(RequestCode.SEND_MESSAGE_V2, header, b"half")
            await producers[0].ask(asking, half)
            await until(lambda: producers[0].count >= 3)
            assert producers[1].count == 0
            for producer in producers:
                await producer.client.close()

    simulated.run(run())
