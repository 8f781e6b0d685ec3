"""Keep a slave's tables equal to its master's.

Upstream: `SlaveSynchronize`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sized
from functools import partial
from time import monotonic
from typing import Final

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.topics import without_topic
from mqlake.errors import MqlakeError
from mqlake.formats.config import DataVersion
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import BodyError, RemotingError
from mqlake.remoting.slices import Job
from mqlake.replication.master_tables import MasterClient
from mqlake.replication.topic_deletions import TopicDeletions
from mqlake.tls.settings import client_tls

TICK: Final = 3.0
"""Seconds between two copies of consumer offsets and of the timer's position."""
FULL: Final = 60.0
"""Seconds between two copies of all other tables."""
_AGAIN: Final = 10.0
"""Seconds after which they are copied again if one of them could not be copied."""
_PATIENCE: Final = 1.0
"""Seconds that a table of positions waits for the log."""
_LOOK: Final = 0.01

_log: Final = logging.getLogger(__name__)


class TableSync:
    """Copies topics, groups, offsets and delivery positions of the master, on a slave.

    A table that is unavailable or malformed is logged once and stays unchanged; the others are
    copied nevertheless.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._config = state, runtime, state.store.config
        now = runtime.settings
        self._master = MasterClient(runtime.slices, client_tls(now), now.inner_credentials)
        self._deletions = TopicDeletions(
            state.store, self._master, self._copies_log, partial(without_topic, state.topics)
        )
        self._next_full = 0.0
        self._copied_from = ""
        self._copying: asyncio.Task[None] | None = None
        self._is_stopped = self._lags = False
        self._failures: dict[str, str] = {}
        runtime.repeating.every(TICK, self._copy_soon)
        state.replicas.on_change.append(self._copy_soon)
        runtime.live.on_change(self._copy_soon, "broker_role")
        runtime.on_stop.append(self._stop)

    async def _stop(self) -> None:
        self._is_stopped = True
        if self._copying is not None:
            self._copying.cancel()
            await asyncio.gather(self._copying, return_exceptions=True)
        await self._master.close()

    def _copy_soon(self) -> None:
        if not self._is_stopped and (self._copying is None or self._copying.done()):
            self._copying = asyncio.get_running_loop().create_task(self._copy())

    async def _copy(self) -> None:
        replicas, address = self._state.replicas, self._state.replicas.master_address
        if not self._follows(address):
            replicas.note_master(answers=False)
            return
        now = self._state.store.clock.monotonic()
        if address != self._copied_from or now >= self._next_full:
            is_whole = await self._copy_all(address)
            self._copied_from, self._next_full = address, now + (FULL if is_whole else _AGAIN)
        answers = await self._try("consumer offsets", address, self._consumer_offsets)
        replicas.note_master(answers=answers)
        if self._runtime.settings.timer_wheel_enable:
            await self._try("timer positions", address, self._timer)
        await self._try("deletions of topics", address, self._delete)

    async def _copy_all(self, address: str) -> bool:
        """Copy the tables that seldom change; return whether all of them were copied."""
        # Topics and groups come first, because offsets refer to them.
        done = [
            await self._try("topics", address, self._topics),
            await self._try("groups", address, self._groups),
            await self._try("delay offsets", address, self._delay_offsets),
        ]
        for code in self._state.followed:
            copy = partial(self._other, code)
            done.append(await self._try(code.name, address, copy))
        return all(done)

    def _follows(self, address: str) -> bool:
        """Return whether this is a slave of the master at an address.

        It may have been promoted, or acts for the master, which has not adopted its offsets yet.
        """
        settings, replicas = self._runtime.settings, self._state.replicas
        is_other = address not in ("", settings.broker_address)
        is_slave = settings.is_slave and not replicas.is_acting
        return is_slave and is_other and address == replicas.master_address

    def _copies_log(self, address: str) -> bool:
        """Return whether it follows the master, whose log continues this one."""
        slave = self._state.replication.slave
        return self._follows(address) and slave is not None and slave.reception.is_activated

    async def _try(self, what: str, address: str, copy: Callable[[str], Awaitable[None]]) -> bool:
        """Copy a table; log a failure, once for as long as the reason is the same.

        Returns:
            Whether it was copied, or the master is of a release without such a table.
        """
        try:
            await copy(address)
        except RemotingError as error:
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return True
            failure, trace = str(error), None
        except MqlakeError as error:
            failure, trace = str(error), None
        except Exception as error:  # noqa: BLE001 (the other tables are copied all the same)
            failure, trace = f"{type(error).__name__}: {error}", error
        else:
            if self._failures.pop(what, None) is not None:
                _log.info("%s are copied from master %s again", what, address)
            return True
        if self._failures.get(what) != failure:
            self._failures[what] = failure
            _log.warning(
                "%s are not copied from master %s, and stay as they are: %s",
                what,
                address,
                failure,
                exc_info=trace,
            )
        return False

    async def _topics(self, address: str) -> None:
        is_same_log, end = self._copies_log(address), (await self._master.log(address)).end
        found = await self._master.topics(address)
        if not self._follows(address):
            return
        topics, static_topics = self._state.topics, self._state.static_topics
        if found.version != topics.version:
            _check_loss("topics", found.topics, topics, found.version, topics.version)
            await self._finish(address, topics.follow(found.topics, found.version))
            await self._state.store.keeping.keep(self._config.topics)
        if found.mapping_version != static_topics.version and self._follows(address):
            following = static_topics.follow(found.mappings, found.mapping_version)
            await self._finish(address, following)
            await self._state.store.keeping.keep(self._config.static_topics)
        if is_same_log and self._follows(address) and found.version == topics.version:
            self._deletions.copied(address, found.version, end, found.incarnations)

    async def _delete(self, address: str) -> None:
        await self._deletions.follow(address)

    async def _groups(self, address: str) -> None:
        found, groups = await self._master.groups(address), self._state.groups
        if not self._follows(address):
            return
        if found.version == groups.version and found.forbidden == groups.forbidden_table():
            return
        _check_loss("groups", found.groups, groups, found.version, groups.version)
        following = groups.follow(found.groups, found.forbidden, found.version)
        await self._finish(address, following)
        await self._state.store.keeping.keep(self._config.groups)

    async def _delay_offsets(self, address: str) -> None:
        offsets, version = await self._master.delay_offsets(address)
        known = self._config.delay_offsets
        if not await self._has_log_of(address):
            return
        _check_loss("delay offsets", offsets, known.items(), version, known.version)
        known.follow(offsets, version)

    async def _consumer_offsets(self, address: str) -> None:
        table, version = await self._master.consumer_offsets(address)
        known = self._config.consumer_offsets
        if not await self._has_log_of(address):
            return
        if not table:
            here = list(known.committed())
            _check_loss("consumer offsets", table, here, version, known.version)
        await self._finish(address, known.follow(table, version))

    async def _timer(self, address: str) -> None:
        checkpoint = await self._master.body(address, RequestCode.GET_TIMER_CHECK_POINT)
        if await self._has_log_of(address):
            self._state.store.timers.follow(bytes(checkpoint))

    async def _other(self, code: RequestCode, address: str) -> None:
        bodies = [body async for body in self._master.parts(address, code)]
        if self._follows(address):
            await self._finish(address, self._state.followed[code](bodies))

    async def _finish(self, address: str, job: Job[None]) -> None:
        """Run a job while this is the slave of the master."""
        await self._runtime.slices.finish(self._while_slave(address, job))

    def _while_slave(self, address: str, job: Job[None]) -> Job[None]:
        """Continue a job while this is a slave of the master: later, tables are its own."""
        for step in job:
            if not self._follows(address):
                return
            yield step

    async def _has_log_of(self, address: str) -> bool:
        """Wait a moment until this log has what the master's has now; return whether it has.

        Positions of delivery and of groups wait for that. They mean that everything before them is
        done, but the result may be only in the master's log if this slave is promoted.
        """
        end, watermarks = (await self._master.log(address)).end, self._state.store.watermarks
        deadline = monotonic() + _PATIENCE
        while True:
            is_complete = watermarks.end >= end
            if is_complete or not self._follows(address) or monotonic() >= deadline:
                break
            await asyncio.sleep(_LOOK)
        if is_complete is self._lags:
            self._lags = not is_complete
            _log.info(
                "the log of master %s is %s: positions are %s",
                address,
                "copied" if is_complete else f"not copied up to {end} yet",
                "copied again" if is_complete else "not copied until then",
            )
        return is_complete and self._follows(address)


def _check_loss(
    what: str, found: Sized, known: Sized, version: DataVersion, known_version: DataVersion
) -> None:
    """Refuse an empty table in place of one with entries, unless a later version has emptied it."""
    if found or not known or _age(version) > _age(known_version):
        return
    raise BodyError(
        f"the master has no {what} in version {version.counter}, and here are {len(known)} of"
        f" version {known_version.counter}"
    )


def _age(version: DataVersion) -> tuple[int, int, int]:
    return version.state_version, version.timestamp, version.counter
