"""A simulated controller: no consensus; it answers late, or not at all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from mqlake.broker.state.controllers import Controllers
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.controller import ControllerHeartbeatHeader, ExchangeHaInfoHeader
from mqlake.replication.auto_switch.term import MasterTerm
from tests.simulation.group.node import Node
from tests.simulation.loop import SimulatedLoop
from tests.simulation.process import CURRENT

T = TypeVar("T")
_SCAN = 1.0
"""Seconds between looks which brokers are dead."""
_CALL = 3.0
"""Seconds after which a call without an answer fails."""


class SimulatedController:
    """Who is the master, and which brokers are in sync; as RocketMQ's controller decides it.

    Attributes:
        term: what it says now.
        deaf_to: simulated time until which a broker does not reach it, by number.
        on_elected: called with a broker that becomes the master.
    """

    def __init__(self, loop: SimulatedLoop, nodes: Sequence[Node], dice: random.Random) -> None:
        self._loop, self._dice = loop, dice
        self.nodes = {node.number: node for node in nodes}
        self.term = MasterTerm(0, None, "", frozenset(), 0)
        self.deaf_to: dict[int, float] = {}
        self._heard: dict[int, tuple[float, object, ControllerHeartbeatHeader]] = {}
        self.on_elected: Callable[[Node], object] = lambda _: None
        self._scan()

    # Who is alive

    def _scan(self) -> None:
        self._loop.call_later(_SCAN, self._scan, context=self._loop.own_context)
        if self.term.master_id is not None and not self._is_alive(self.term.master_id):
            self._elect()

    def _is_alive(self, number: int) -> bool:
        heard = self._heard.get(number)
        if heard is None:
            return False
        at, _, header = heard
        return self._loop.time() < at + header.heartbeat_timeout_mills / 1000

    def ended(self, number: int) -> None:
        """Take note that a broker's connections are closed."""
        self._heard.pop(number, None)
        if number == self.term.master_id:
            self._elect()

    def heard(self, header: ControllerHeartbeatHeader) -> None:
        """Take a heartbeat."""
        node = self.nodes[header.broker_id]
        self._heard[header.broker_id] = self._loop.time(), node.process, header

    # What brokers ask

    def elect(self, number: int) -> MasterTerm:
        """Have a master elected, unless there is one."""
        if self.term.master_id is None:
            if not self.term.members:
                self._lead(number)
            else:
                self._elect()
        if self.term.master_id is None:
            raise RemotingError(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, "nobody is in sync")
        return self.term

    def designate(self, number: int) -> None:
        """Make a member of the in-sync set the master, as `electMaster` of `mqadmin` does."""
        if number in self.term.members and self._is_alive(number):
            self._lead(number)

    def _elect(self) -> None:
        term = self.term
        alive = sorted(each for each in term.members if self._is_alive(each))
        if not alive:
            self.term = term._replace(number=term.number + 1, master_id=None, master_address="")
            return
        if term.master_id in alive:
            return

        def rank(number: int) -> tuple[int, int]:
            header = self._heard[number][2]
            return header.epoch or 0, header.max_offset or 0

        self._lead(max(alive, key=rank))

    def _lead(self, number: int) -> None:
        term, node = self.term, self.nodes[number]
        self.term = MasterTerm(
            term.number + 1, number, node.address, frozenset((number,)), term.version + 1
        )
        for each in self.nodes.values():
            self._note_set(each)
            state: Any = each.state
            if state is not None and not self.is_deaf_to(each.number):
                seconds = self._dice.random() * 0.01
                self._loop.call_later(
                    seconds, state.membership.look_soon, context=self._loop.own_context
                )
        self.on_elected(node)

    def _note_set(self, node: Node) -> None:
        if node.number not in self.term.members:
            node.has_lost = False  # it has to have everything before it may join again

    def alter(self, term: MasterTerm, members: Iterable[int], version: int) -> MasterTerm:
        """Change the in-sync set."""
        asked, now = frozenset(members), self.term
        if term.master_id != now.master_id:
            raise RemotingError(ResponseCode.CONTROLLER_INVALID_MASTER, "another one")
        if term.number != now.number:
            raise RemotingError(ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, "old epoch")
        if version != now.version:
            raise RemotingError(ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, "old set")
        if not all(self._is_alive(each) for each in asked):
            raise RemotingError(ResponseCode.CONTROLLER_BROKER_NOT_ALIVE, "dead")
        if now.master_id not in asked:
            raise RemotingError(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "no master")
        self.term = now._replace(members=asked, version=now.version + 1)
        for node in self.nodes.values():
            self._note_set(node)
        return self.term

    # How it is reached

    def is_deaf_to(self, number: int) -> bool:
        """Say whether a broker does not reach it."""
        return self._loop.time() < self.deaf_to.get(number, 0)

    async def call(self, number: int, function: Callable[[], T]) -> T:
        """Call a function of the controller for a broker: it may be called without an answer."""
        if self.is_deaf_to(number):
            if self._dice.random() < 0.3:
                function()
            await asyncio.sleep(_CALL)
            raise MqlakeError("the controller does not answer")
        await asyncio.sleep(0.0002 + self._dice.random() * 0.004)
        try:
            found: T | RemotingError = function()
        except RemotingError as error:
            found = error
        await asyncio.sleep(0.0002 + self._dice.random() * 0.004)
        if isinstance(found, RemotingError):
            raise found
        return found


def controllers_of(controller: SimulatedController) -> type:
    """Return what stands for `Controllers` in the brokers of a group."""

    def make(*_: object) -> SimulatedControllers:
        process = CURRENT.get()
        assert process is not None
        return SimulatedControllers(controller, int(process.name.rpartition("-")[2]))

    return cast("type", make)


class SimulatedControllers(Controllers):
    """What one broker asks the controller."""

    def __init__(self, controller: SimulatedController, number: int) -> None:
        self._controller, self._number = controller, number
        self.news = asyncio.Event()

    async def _call(self, function: Callable[[], T]) -> T:
        return await self._controller.call(self._number, function)

    async def close(self) -> None:
        if not self._controller.is_deaf_to(self._number):
            self._controller.ended(self._number)

    async def find_leader(self) -> str:
        return await self._call(lambda: "controller")

    async def next_broker_id(self) -> int:
        return await self._call(lambda: self._number)

    async def apply_for(self, broker_id: int, check_code: str) -> None:
        assert broker_id == self._number
        await self._call(lambda: None)

    async def register(self, broker_id: int) -> MasterTerm:
        return await self.term()

    async def term(self) -> MasterTerm:
        return await self._call(lambda: self._controller.term)

    async def elect(self, broker_id: int) -> MasterTerm:
        return await self._call(lambda: self._controller.elect(broker_id))

    async def _ask_to_alter(
        self, term: MasterTerm, members: Iterable[int], version: int
    ) -> MasterTerm:
        asked = frozenset(members)
        return await self._call(lambda: self._controller.alter(term, asked, version))

    def beat(self, header: ControllerHeartbeatHeader) -> None:
        if not self._controller.is_deaf_to(self._number):
            self._controller.heard(header)


def client_of(controller: SimulatedController) -> type:
    """Return what stands for `RemotingClient` in the membership of a broker."""

    class SimulatedClient:
        def __init__(self, **_: object) -> None:
            pass

        async def call(self, address: str, asked: Command) -> Command:
            await asyncio.sleep(0.001)
            node = next(each for each in controller.nodes.values() if each.address == address)
            state = node.state
            if state is None:
                raise MqlakeError(f"{address} does not answer")
            header = ExchangeHaInfoHeader(master_ha_address=state.replicas.ha_address or None)
            return response(asked, header=header)

        async def close(self) -> None:
            pass

    return SimulatedClient
