"""A copy of a running master's store, kept up to date."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Self

import msgspec

from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError, StoreError
from mqlake.metrics.histogram import Histogram
from mqlake.programs.kernels import load_kernels
from mqlake.replica.master import FoundMaster, UnusableMasterError, find_master
from mqlake.replica.options import ReplicaOptions
from mqlake.replica.origin import note_origin
from mqlake.replica.status import Lag, ReplicaStatus
from mqlake.replica.topics import TopicCopy
from mqlake.replication.comparison import BeginOtherwiseError, DivergedError
from mqlake.replication.master_log import MasterLog, ask
from mqlake.replication.reception import Reception
from mqlake.replication.settings import ReplicationSettings
from mqlake.storage.clock import SystemClock
from mqlake.store.live_settings import LiveSettings
from mqlake.store.message_store import MessageStore
from mqlake.store.settings import settings_of

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
"""Seconds until a master that failed is asked again: doubled each time, up to these."""
_POLL = 1.0
"""Seconds between two looks where the master's log ends."""
_LOOK_UP = 30.0
"""Seconds between two looks whether the name server still names this master."""
_LATE = 1.0
"""Seconds that a put may be answered after its `slaveTimeout`."""
_ADVICE = (
    "give an empty --store to copy the master's log from its beginning; this one stays as it is"
)

_log = logging.getLogger(__name__)


class Replica:
    """Copies a master's store into a directory; `async with Replica(options) as replica:` runs it.

    Nothing is registered anywhere. The directory is owned by this process meanwhile.

    Args:
        held: returns the physical offset from which on somebody else needs the copy: retention
            removes nothing from there on.

    Attributes:
        failed: done once the copy cannot be continued, with the reason.
        caught_up: set once the copy had all that the master had when it was found, and nothing that
            the master had deleted.
    """

    failed: asyncio.Future[MqlakeError]

    def __init__(self, options: ReplicaOptions, held: Callable[[], int] | None = None) -> None:
        self._options, self._held = options, held
        self._clock, self._lag = SystemClock(), Lag()
        self._cluster = Cluster(
            options.name_servers, tls=options.tls, credentials=options.credentials
        )
        self._store: MessageStore | None = None
        self._reception: Reception | None = None
        self._topics: TopicCopy | None = None
        self._master: FoundMaster | None = None
        self._master_end: int | None = None
        self._target: int | None = None
        self._problem: str | None = "the master is being looked up"
        self._last_arrival = 0.0
        self._has_all = False
        self.caught_up = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self.failed = self._loop.create_future()
        self._last_arrival = self._loop.time()
        self._undo = AsyncExitStack()
        self._task = self._loop.create_task(self._run())
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._cluster.close()
        if self._topics is not None:
            await self._topics.close()
        try:
            if self._store is not None and self._reception is not None:
                self._store.copying.drop()
                if self._has_all and not self.failed.done():
                    await self._store.sync.trim()
        finally:
            await self._undo.aclose()

    def status(self) -> ReplicaStatus:
        """Return how far the copy is; the lag is that since the last call."""
        found = self.progress()
        lag = self._lag.take(found.time, lacks=found.lag_bytes != 0)
        return msgspec.structs.replace(found, lag_ms=lag)

    @property
    def arrivals(self) -> Histogram:
        """A copy of the times, in milliseconds, that messages took from the master to here."""
        return self._lag.times.copy()

    def progress(self) -> ReplicaStatus:
        """Return how far the copy is, without the lag in time."""
        now, store, master, end = self._clock.milliseconds(), self._store, self._master, 0
        first = rate = received = 0
        if store is not None and self._reception is not None:
            first, end = store.watermarks.min_offset, store.watermarks.end
            rate = self._reception.rate.of_last_second(self._loop.time())
            received = self._reception.received
        theirs = self._master_end
        lacks = None if theirs is None else max(theirs - end, 0)
        return ReplicaStatus(
            time=now,
            master=master.name if master else None,
            address=master.address if master else None,
            store=str(self._options.store),
            min_offset=first,
            max_offset=end,
            master_max_offset=None if theirs is None else max(theirs, end),
            lag_bytes=lacks,
            lag_ms=None,
            bytes_per_second=rate,
            received=received,
            problem=self._problem,
        )

    # One connection after the other

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            received = self._received
            try:
                master = await self._find()
                await self._follow(await self._opened(master), master)
                reason = "the connection is over"
            except BeginOtherwiseError:
                continue
            except Exception as error:  # noqa: BLE001 (a task that dies silently copies nothing)
                if (final := self._final(error)) is not None:
                    return self._fail(final)
                reason = str(error) or type(error).__name__
            if self._received != received:
                pause = _FIRST_PAUSE
            elif not self._options.is_patient:
                return self._fail(MqlakeError(f"{self._options.master}: {reason}"))
            if reason != self._problem:
                _log.error("%s: not followed: %s", self._options.master, reason)
            self._problem = reason
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _find(self) -> FoundMaster:
        found, known = await find_master(self._cluster, self._options), self._master
        if known is not None and found.name != known.name:
            raise MqlakeError(f"{found.address} was {known.name}, and calls itself {found.name}")
        self._master = found
        return found

    def _final(self, error: Exception) -> MqlakeError | None:
        """Return the failure if it is of no use to try again; None if it is."""
        store = self._store
        if store is not None and store.core.health.failure is not None:
            return store.core.health.failure
        match error:
            case DivergedError():
                return StoreError(f"{self._options.store}: {error}; {_ADVICE}")
            case UnusableMasterError():
                # A master that was followed may be about to be replaced.
                return error if store is None else None
            case StoreError():
                return error if store is None else None
            case MqlakeError() | OSError():
                return None
            case _:
                pass
        _log.error("the copy failed", exc_info=error)
        return MqlakeError(f"{type(error).__name__}: {error}")

    @property
    def _received(self) -> int:
        return self._reception.received if self._reception else 0

    def _fail(self, error: MqlakeError) -> None:
        self._problem = str(error)
        if not self.failed.done():
            self.failed.set_result(error)

    async def _opened(self, master: FoundMaster) -> MessageStore:
        """Return the store, which has files as its master's; it is opened when that is known.

        Raises:
            StoreError: it is another master's, or cannot be opened.
        """
        if self._store is not None:
            return self._store
        given = self._options.settings(master.name, master.files)
        settings: LiveSettings[ReplicationSettings] = LiveSettings(
            settings_of(ReplicationSettings, given)
        )
        await self._loop.run_in_executor(None, load_kernels)
        async with AsyncExitStack() as undo:
            store = MessageStore.open(self._options.store, settings)
            await undo.enter_async_context(store)
            note_origin(store.directory, master.name)
            if self._held is not None:
                store.retention.hold(self._held)
            self._undo = undo.pop_all()
        store.failed.add_done_callback(self._store_failed)
        self._reception = Reception(
            settings,
            store,
            is_counted=self._options.is_counted,
            arrived=self._arrived,
            activated=self._activated,
            tls=self._options.tls if self._options.has_ha_tls else None,
        )
        self._topics = TopicCopy(
            store, self._options, lambda: self._is_followed, self._note_caught_up
        )
        self._store = store
        return store

    def _store_failed(self, failed: asyncio.Future[StoreError]) -> None:
        if not failed.cancelled():
            self._fail(failed.result())

    def _arrived(self) -> None:
        assert self._store is not None
        self._last_arrival = self._loop.time()
        self._lag.add(self._clock.milliseconds(), self._store.copying.last_stored)
        self._note_caught_up()

    def _activated(self) -> None:
        self._problem = None
        self._note_caught_up()

    def _note_caught_up(self) -> None:
        if self._target is None or self._store is None or self._reception is None:
            return
        if self._reception.is_activated and self._store.watermarks.end >= self._target:
            self._has_all = True
        if self._has_all and self._topics is not None and self._topics.is_settled:
            self.caught_up.set()

    async def _follow(self, store: MessageStore, master: FoundMaster) -> None:
        """Follow a master until its connection ends; raises as `Reception.follow`."""
        assert self._reception is not None
        assert self._topics is not None
        log = await self._ask(master)
        if log is None and not self._options.is_patient:
            raise MqlakeError(f"{master.address} does not tell where its log ends")
        if self._target is None and log is not None:
            self._target = log.end
        topics = self._topics
        await self._stay_uncounted(store, master)
        # The log may have grown, or lost files, meanwhile.
        log = await self._ask(master)
        if log is not None and log.end == 0 and store.copying.is_empty:
            self._activated_empty()
        await _first_to_end(
            self._reception.follow(master.ha_address, log, lambda: topics.copy(master.address)),
            self._watch(store, master),
            topics.keep(master.address),
        )

    @property
    def _is_followed(self) -> bool:
        return self._reception is not None and self._reception.is_activated

    def _activated_empty(self) -> None:
        """There is nothing to copy: an empty log is one that has been copied."""
        self._problem, self._has_all = None, True
        self.caught_up.set()

    async def _stay_uncounted(self, store: MessageStore, master: FoundMaster) -> None:
        """Wait until no put waits that this copy has: a request acknowledges what is before it."""
        if self._options.is_counted or store.copying.is_empty or not master.ack_wait:
            return
        until = self._last_arrival + master.ack_wait + _LATE
        await asyncio.sleep(max(until - self._loop.time(), 0))

    async def _ask(self, master: FoundMaster) -> MasterLog | None:
        try:
            log = await ask(self._cluster.client, master.address)
        except MqlakeError as error:
            _log.info("where the master's log is, is not known: %s", error)
            return None
        self._master_end = log.end
        return log

    async def _watch(self, store: MessageStore, master: FoundMaster) -> None:
        """Look how far the master is, and whether it is still the one that is meant.

        Raises:
            DivergedError: its retention has overtaken this copy.
            MqlakeError: the name server names another master.
        """
        next_look_up = self._loop.time() + _LOOK_UP
        while True:
            await asyncio.sleep(_POLL)
            end = store.copying.expected
            log = await self._ask(master)
            if log is not None and not store.copying.is_empty and end < log.start:
                raise DivergedError(
                    f"this log ends at physical offset {end}, and its master's begins at"
                    f" {log.start}: what is between is gone"
                )
            if self._loop.time() >= next_look_up:
                next_look_up = self._loop.time() + _LOOK_UP
                await self._look_up(master)

    async def _look_up(self, master: FoundMaster) -> None:
        try:
            found = await self._find()
        except MqlakeError as error:
            _log.info("the master is not found, and its connection is kept: %s", error)
            return
        if found.ha_address != master.ha_address:
            raise MqlakeError(
                f"the master was at {master.address}, and {found.address} is named now"
            )


async def _first_to_end(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until one ends or fails, then end the others; raises what it raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
        done.pop().result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
