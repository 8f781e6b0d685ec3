"""A client that means well."""

from __future__ import annotations

import asyncio

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND, PullHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.remoting.client import RemotingClient
from tests.attacks.broker_process import Attack
from tests.broker.pull.pulls import pull_header
from tests.broker.running import PATIENCE, to


def send(attack: Attack, topic: str, body: bytes) -> None:
    """Send a message to queue 0 and pull it, as a client does that means well."""

    async def run() -> None:
        client = RemotingClient()
        asked = request(RequestCode.SEND_MESSAGE_V2, to(topic, queue_id=0), body)
        try:
            answer = await client.call(attack.address, asked, PATIENCE)
            offset = answer.header(SendMessageResponseHeader).queue_offset
            pull = request(RequestCode.PULL_MESSAGE, waiting(topic, {}, offset))
            await client.call(attack.address, pull, PATIENCE)
        finally:
            await client.close()

    asyncio.run(run())


def waiting(topic: str, fields: dict[str, object], offset: int = 1) -> PullHeader:
    flags = HAS_SUBSCRIPTION | MAY_SUSPEND
    known = {"topic": topic, "sys_flag": flags, "suspend_timeout_millis": 600_000, **fields}
    return pull_header(offset, **known)
