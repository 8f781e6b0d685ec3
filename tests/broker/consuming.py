"""Consumers of a broker that runs in a test: heartbeats, subscriptions, notices."""

from __future__ import annotations

import asyncio
import json

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.connection import Peer
from tests.broker.running import PATIENCE, Running


def subscription(topic: str, expression: str = "*", version: int = 1, **fields: object) -> object:
    """Return a subscription as clients write it."""
    base = {"topic": topic, "subString": expression, "subVersion": version, "expressionType": "TAG"}
    sets: dict[str, object] = {"tagsSet": [], "codeSet": [], "classFilterMode": False}
    return base | sets | fields


def heartbeat(
    client_id: str, group: str, *subscriptions: object, **fields: object
) -> dict[str, object]:
    """Return the heartbeat of a consumer as clients write it."""
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": list(subscriptions),
        "unitMode": False,
    }
    known = {name: value for name, value in fields.items() if name not in consumer}
    consumer |= {name: value for name, value in fields.items() if name in consumer}
    return {"clientID": client_id, "producerDataSet": [], "consumerDataSet": [consumer]} | known


class Consumer:
    """One client of a broker, on a connection of its own.

    Attributes:
        notices: the groups that it was told to have changed, in order.
    """

    def __init__(self, broker: Running, client_id: str = "consumer-1") -> None:
        self.client_id = client_id
        self.notices: list[str] = []
        self._noticed = asyncio.Event()
        self._address = broker.address
        handlers = {RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._notice}
        self._client = RemotingClient(handlers, connect_timeout=PATIENCE)

    def _notice(self, peer: Peer, told: Command) -> None:
        self.notices.append(told.fields["consumerGroup"])
        self._noticed.set()

    async def ask(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Return the response to a request, whatever its code."""
        return await self._client.request(self._address, request(code, header, body), PATIENCE)

    async def beat(self, group: str, *subscriptions: object, **fields: object) -> Command:
        """Send a heartbeat."""
        body = heartbeat(self.client_id, group, *subscriptions, **fields)
        return await self.ask(RequestCode.HEART_BEAT, None, json.dumps(body).encode())

    async def told(self, count: int) -> list[str]:
        """Return the groups of the notices once there are `count`."""
        async with asyncio.timeout(PATIENCE):
            while len(self.notices) < count:
                self._noticed.clear()
                await self._noticed.wait()
        return self.notices

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()
