"""Act for the master while it is gone, if this is the slave with the smallest id.

Upstream: `BrokerController.syncBrokerMemberGroup`, `onMinBrokerChange`. An acting slave writes
nothing: it has no bridge to other masters (upstream: `EscapeBridge`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.client.cluster import MASTER
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route

GIVES_BACK: Final = 60.0
"""Seconds for which a slave that has acted serves reads nevertheless: clients look at their routes
every half minute.
"""

_log: Final = logging.getLogger(__name__)


class ActingMaster:
    """Sends heartbeats to name servers, and learns from them whether this slave has to act.

    It asks at intervals, and at once if it is notified of a change. Only the answer of a name
    server says what has changed.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._look = asyncio.Event()
        self._had_master = True
        self._failures: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._gives_back: asyncio.TimerHandle | None = None
        if runtime.settings.has_acting_master:
            runtime.on_start.append(self._start)
            state.names.on_stop.append(self._stop)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        code = RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE
        return (Route(code, self._notified, Permission.UPDATE),)

    def _notified(self, _peer: Peer, request: Command) -> Command:
        self._look.set()
        return response(request)

    async def _start(self) -> None:
        self._tasks = [asyncio.create_task(self._keep()), asyncio.create_task(self._beat())]

    async def _stop(self) -> None:
        if self._gives_back is not None:
            self._gives_back.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            try:
                self._state.names.send_heartbeat()
            except Exception as error:  # noqa: BLE001 (without this task the broker counts as dead)
                self._report("heartbeats are not sent", error)
            else:
                self._failures.pop("heartbeats are not sent", None)
            await asyncio.sleep(self._runtime.settings.broker_heartbeat_interval / 1000)

    async def _keep(self) -> None:
        while True:
            self._look.clear()
            try:
                await self._look_now()
            except Exception as error:  # noqa: BLE001 (a slave without this task never acts)
                self._report("the brokers of this name are not known", error)
            else:
                self._failures.pop("the brokers of this name are not known", None)
            with suppress(TimeoutError):
                period = self._runtime.settings.sync_broker_member_group_period / 1000
                async with asyncio.timeout(period):
                    await self._look.wait()

    def _report(self, what: str, error: Exception) -> None:
        """Log a failure, once for as long as it is the same."""
        failure = str(error) if isinstance(error, MqlakeError) else repr(error)
        if failure != self._failures.get(what):
            trace = None if isinstance(error, MqlakeError) else error
            _log.warning("%s: %s", what, failure, exc_info=trace)
            self._failures[what] = failure

    async def _look_now(self) -> None:
        """Begin or stop acting, depending on who is alive according to the name servers.

        A slave whose log differs from its master's never acts: its messages are not the master's.

        Raises:
            MqlakeError: no name server answers; nothing changes then.
        """
        state, runtime = self._state, self._runtime
        if not runtime.settings.is_slave:
            self._act(acts=False)  # An administrator has promoted it.
            return
        members = await state.names.members()
        settings, slave = runtime.settings, state.replication.slave  # They may have changed.
        has_master = MASTER in members
        if slave is None or slave.has_diverged or has_master:
            self._act(acts=False)
        elif members.get(settings.broker_id) != settings.broker_address:
            return  # No name server knows this broker yet, so perhaps not the master.
        else:
            self._act(acts=settings.is_slave and settings.broker_id == min(members))
        if has_master is not self._had_master:
            # The answer to a registration says where the master is.
            self._had_master = has_master
            state.names.changed()

    def _act(self, *, acts: bool) -> None:
        replicas = self._state.replicas
        if acts is replicas.is_acting:
            return
        if self._gives_back is not None:
            self._gives_back.cancel()
        if acts:
            replicas.begin_to_act()
            # So the returning master sees that there are offsets that it does not know.
            self._state.store.config.consumer_offsets.next_version()
            _log.warning("the master is gone: this slave serves reads, offsets and locks for it")
        else:
            replicas.end_acting()
            _log.info("this slave does not act for the master any more")
            # From now on, the address that a returning master has stated itself is ignored.
            self._state.replication.follow_known_master()
            loop = asyncio.get_running_loop()
            self._gives_back = loop.call_later(GIVES_BACK, self._given_back)

    def _given_back(self) -> None:
        self._state.replicas.was_replaced()
