"""Producers and consumers that go on, whatever becomes of their connections."""

from __future__ import annotations

import asyncio
import logging

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.remoting.client import RemotingClient
from tests.broker.pull.pulls import pull_header, pulled
from tests.broker.running import to

ANSWER = 3.0
"""Seconds after which a request is sent again, as a rule."""
AGAIN = 0.02
"""Seconds between tries."""
SUSPEND = 300
"""Milliseconds that a pull may wait."""


class Producer:
    """Sends numbered messages to one queue, each until it is acknowledged.

    Args:
        answer: seconds after which a request is sent again.

    Attributes:
        acknowledged: queue offsets of messages, by number.
        tries: requests sent.
    """

    def __init__(self, address: str, topic: str, queue_id: int, answer: float = ANSWER) -> None:
        self._address, self._topic, self._queue_id = address, topic, queue_id
        self._answer = answer
        self.acknowledged: dict[int, int] = {}
        self.tries = 0

    async def send(self, count: int) -> None:
        client = RemotingClient()
        try:
            for number in range(count):
                while not await self._once(client, number):  # noqa: ASYNC110 (between tries)
                    await asyncio.sleep(AGAIN)
        finally:
            await client.close()

    def has_sent(self, count: int, end: int) -> bool:
        """Say whether so many messages were acknowledged, all of them before an offset."""
        offsets = self.acknowledged.values()
        return len(offsets) >= count and max(offsets) < end

    async def _once(self, client: RemotingClient, number: int) -> bool:
        self.tries += 1
        header = to(self._topic, queue_id=self._queue_id)
        asked = request(RequestCode.SEND_MESSAGE_V2, header, body(self._queue_id, number))
        try:
            answer = await client.request(self._address, asked, self._answer)
            if answer.code != ResponseCode.SUCCESS:
                return False
            told = answer.header(SendMessageResponseHeader)
        except MqlakeError:
            return False
        self.acknowledged[number] = told.queue_offset
        return True


class Consumer:
    """Pulls one queue from its beginning, with long polling.

    Attributes:
        bodies: of all messages, in the order of the queue.
    """

    def __init__(self, address: str, topic: str, queue_id: int) -> None:
        self._address, self._topic, self._queue_id = address, topic, queue_id
        self.bodies: list[bytes] = []

    async def read(self, producer: Producer, count: int) -> None:
        """Return once `count` messages were acknowledged, and all of them have come."""
        client = RemotingClient()
        try:
            while not producer.has_sent(count, len(self.bodies)):
                if not await self._once(client):
                    await asyncio.sleep(AGAIN)
        finally:
            await client.close()

    async def _once(self, client: RemotingClient) -> bool:
        header = pull_header(
            len(self.bodies),
            topic=self._topic,
            queue_id=self._queue_id,
            sys_flag=HAS_SUBSCRIPTION | MAY_SUSPEND,
            suspend_timeout_millis=SUSPEND,
        )
        try:
            answer = await client.request(
                self._address, request(RequestCode.PULL_MESSAGE, header), ANSWER
            )
            found = pulled(answer)
        except MqlakeError:
            return False
        for record in found.records:
            assert record.queue_offset == len(self.bodies), "a queue with a gap"
            self.bodies.append(record.body)
        return answer.code == ResponseCode.SUCCESS


def body(queue_id: int, number: int) -> bytes:
    """Return the body of a message."""
    return b"%d:%d:" % (queue_id, number) + b"x" * 100


def check(producer: Producer, consumer: Consumer, queue_id: int, count: int) -> None:
    """See that a queue has each message where it was acknowledged, and all in order."""
    expected = [body(queue_id, number) for number in range(count)]
    assert list(dict.fromkeys(consumer.bodies)) == expected  # some may be there twice, later
    for number, offset in producer.acknowledged.items():
        assert consumer.bodies[offset] == expected[number]
    assert len(consumer.bodies) <= producer.tries


class Accidents(logging.Handler):
    """What a server logs as an accident."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
