"""A broker of one side, in real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from mqlake.remoting.client import RemotingClient
from tests.broker.endings.scene import Pace, Scene
from tests.peer.endings.sides import Side


class Real(Scene):
    """A broker of one side, once it is started.

    Attributes:
        settings: those of the last start.
        ended: when the broker ended before that, by the monotonic clock, in seconds.
    """

    def __init__(self, side: Side, client: RemotingClient, pace: Pace) -> None:
        super().__init__(pace)
        self._side, self._client = side, client
        self.ended = 0.0
        self.settings: Mapping[str, object] = {
            "brokerName": "broker-a",
            "mappedFileSizeCommitLog": 1 << 24,
            "enablePopBufferMerge": "true",  # Otherwise RocketMQ keeps no check point in memory.
            "flushConsumerOffsetInterval": 3_600_000,  # A kill loses what may be lost, always.
            **_stay(pace),
        }

    @property
    def address(self) -> str:
        return self._side.address

    @property
    def client(self) -> RemotingClient:
        return self._client

    async def start(self) -> None:
        await asyncio.to_thread(self._side.start, self.settings)

    async def restart(self, **settings: object) -> None:
        await asyncio.to_thread(self._side.stop)
        self.ended = time.monotonic()
        self.settings = {**self.settings, **settings}
        await self.start()

    async def kill(self) -> None:
        await asyncio.to_thread(self._side.kill)
        self.ended = time.monotonic()
        await self.start()

    async def slow_down(self, pace: Pace) -> None:
        """Go on with another pace."""
        self.pace = pace
        await self.restart(**_stay(pace))

    async def later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def settle(self) -> None:
        """Do nothing: a broker does by itself what it does every second."""

    async def flush(self) -> None:
        """Do nothing: a broker writes and shows messages by itself."""


def _stay(pace: Pace) -> dict[str, object]:
    return {"popCkStayBufferTime": pace.stay * 1000}
