"""What a run does to the servers, the network and the group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tests.client.faults.members import Members
from tests.client.faults.plan import Fault, Plan
from tests.client.proxy import Proxy
from tests.client.servers import RestartableNameServer
from tests.programs.processes import BrokerProcess


@dataclass
class Event:
    """A fault that happened.

    Attributes:
        begun, ended: seconds of the monotonic clock; `ended` is infinite while it lasts.
    """

    kind: str
    begun: float
    ended: float = field(default=float("inf"))


class World:
    """Makes the faults of a plan happen.

    Attributes:
        events: the faults so far.
    """

    def __init__(
        self,
        broker: BrokerProcess,
        names: RestartableNameServer,
        to_broker: Proxy,
        to_names: Proxy,
        members: Members,
    ) -> None:
        self._broker, self._names = broker, names
        self._to_broker, self._to_names, self._members = to_broker, to_names, members
        self.events: list[Event] = []
        self._faults: dict[str, Callable[[float], Awaitable[None]]] = {
            "cut": self._cut,
            "cut in frames": self._cut_in_frames,
            "stall": self._stall,
            "slow": self._slow,
            "half-open": self._half_open,
            "swallow": self._swallow,
            "refuse": self._refuse,
            "refuse the name server": self._refuse_names,
            "swallow the name server": self._swallow_names,
            "kill the broker": self._kill_broker,
            "stop the broker": self._stop_broker,
            "stop the name server": self._stop_names,
            "a consumer joins": self._join,
            "a consumer leaves": self._leave,
        }

    async def run(self, plan: Plan) -> None:
        """Return once all faults of a plan have happened."""
        await asyncio.gather(*(self._track(track) for track in plan.tracks))

    async def _track(self, track: Sequence[Fault]) -> None:
        for fault in track:
            await asyncio.sleep(fault.wait)
            await self.do(fault.kind, fault.seconds)

    async def do(self, kind: str, seconds: float) -> None:
        """Have one fault happen."""
        event = Event(kind, time.monotonic())
        self.events.append(event)
        await self._faults[kind](seconds)
        event.ended = time.monotonic()

    # Network

    async def _cut(self, _: float) -> None:
        self._to_broker.cut_all()
        self._to_names.cut_all()

    async def _cut_in_frames(self, _: float) -> None:
        self._to_broker.cut_in_frames()
        self._to_names.cut_in_frames()

    async def _stall(self, seconds: float) -> None:
        self._to_broker.stalled = True
        await asyncio.sleep(seconds)
        self._to_broker.stalled = False

    async def _slow(self, seconds: float) -> None:
        self._to_broker.pause = 0.01
        await asyncio.sleep(seconds)
        self._to_broker.pause = 0.0

    async def _half_open(self, _: float) -> None:
        self._to_broker.half_open_all()

    async def _swallow(self, seconds: float) -> None:
        await _swallow(self._to_broker, seconds)

    async def _swallow_names(self, seconds: float) -> None:
        await _swallow(self._to_names, seconds)

    async def _refuse(self, seconds: float) -> None:
        await _refuse(self._to_broker, seconds)

    async def _refuse_names(self, seconds: float) -> None:
        await _refuse(self._to_names, seconds)

    # Servers

    async def _kill_broker(self, seconds: float) -> None:
        await asyncio.to_thread(self._broker.kill)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._broker.start)

    async def _stop_broker(self, seconds: float) -> None:
        await asyncio.to_thread(self._broker.stop)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._broker.start)

    async def _stop_names(self, seconds: float) -> None:
        await self._names.stop()
        await asyncio.sleep(seconds)
        await self._names.start()

    # Group

    async def _join(self, _: float) -> None:
        await self._members.join()

    async def _leave(self, _: float) -> None:
        await self._members.leave()


async def _swallow(proxy: Proxy, seconds: float) -> None:
    proxy.swallows = True
    proxy.cut_all()
    await asyncio.sleep(seconds)
    proxy.swallows = False


async def _refuse(proxy: Proxy, seconds: float) -> None:
    proxy.refuse()
    proxy.cut_all()
    await asyncio.sleep(seconds)
    await proxy.listen()
