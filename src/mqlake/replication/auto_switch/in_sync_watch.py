"""A master under a controller: decide which of its slaves may be elected.

Upstream: `AutoSwitchHAService`, `ReplicasManager.checkSyncStateSetAndDoReport`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from mqlake.errors import MqlakeError
from mqlake.replication.auto_switch.connection import AutoSwitchConnection
from mqlake.replication.auto_switch.group import Group
from mqlake.replication.auto_switch.term import ChangeRefusedError, MasterTerm
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import InSyncSet, Store

_NEAR = 1 << 20
"""How many bytes a slave may lack when puts begin to wait for it, so that it can join."""
_AGAIN = 1.0
"""Seconds after which the controller is asked again if it did not answer, or refused."""

_log = logging.getLogger(__name__)


class InSyncWatch:
    """Keeps the in-sync set at the controller up to date with the slaves' connections.

    Args:
        connections: the open connections.
    """

    def __init__(
        self,
        settings: Current[ReplicationSettings],
        store: Store,
        group: Group,
        in_sync_set: InSyncSet,
        connections: Sequence[AutoSwitchConnection],
    ) -> None:
        self._settings, self._store, self._group = settings, store, group
        self._set, self._connections = in_sync_set, connections
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._failure: str | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; the set stays as it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def look(self) -> None:
        """Check soon what has changed: a slave joined, left, or has more."""
        self._let_join()
        if self._wanted() != self._set.members:
            self._changed.set()

    def take(self, term: MasterTerm, *, is_answer: bool = False) -> None:
        """Adopt what the controller reports; ignore the set of another master.

        Args:
            is_answer: see `InSyncSet.set`.
        """
        if term.master_id != self._set.own:
            return
        if self._set.set(term.members, term.version, is_answer=is_answer) or is_answer:
            self._tell()

    def _let_join(self) -> None:
        """Make puts wait for slaves that lack next to nothing, so that these can get the rest."""
        start = self._group.epochs.last
        for each in self._connections:
            if each.broker_id is None or each.is_learner or start is None or not each.is_counted:
                continue
            if each.acknowledged >= start.start and each.lacks <= _NEAR:
                self._set.join(each.broker_id)

    def _wanted(self) -> frozenset[int]:
        """Return the ids that the set should have."""
        patience = self._settings.now.ha_max_time_slave_not_catchup / 1000
        least = self._loop.time() - patience
        connected = {each.broker_id: each for each in self._connections}
        for each in self._set.counted - self._set.members:
            one = connected.get(each)
            if one is None or not one.is_counted or one.caught_up_at < least:
                self._set.leave(each)
        acknowledged = self._store.copies.acknowledged
        kept = {
            each
            for each in self._set.members
            if (one := connected.get(each)) is not None
            and (one.caught_up_at >= least or one.lacks == 0)
            # Otherwise a power loss has taken from it what it had acknowledged.
            and acknowledged.get(each, -1) >= self._set.confirmed
        }
        ready = self._set.ready(acknowledged)
        return frozenset({self._set.own} | kept | ready)

    async def _run(self) -> None:
        while True:
            interval = self._settings.now.check_sync_state_set_period / 1000
            try:
                async with asyncio.timeout(interval):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                await self._update()
            except Exception as error:  # noqa: BLE001 (without this task, puts wait for ever)
                self._report(error)
                await asyncio.sleep(_AGAIN)
                self._changed.set()

    async def _update(self) -> None:
        """Change the set at the controller to the one that it should be.

        Removals come first: no put has to wait for a removed slave because another cannot join.

        Raises:
            MqlakeError: the controller does not answer, or refuses.
        """
        self._let_join()
        while (wanted := self._wanted()) != self._set.members or self._set.is_uncertain:
            kept = wanted & self._set.members
            if kept == self._set.members:
                await self._alter(wanted)
            else:
                await self._shrink(kept)

    async def _shrink(self, kept: frozenset[int]) -> None:
        """Ask for fewer members.

        A controller refuses a set with a broker that it takes for dead, which may still be
        connected here. Nobody has to wait for those that leave because of it: it leaves, too.

        Raises:
            MqlakeError: the controller does not answer, or refuses.
        """
        others = sorted(kept - {self._set.own})
        fewer = [kept - {each} for each in others] if len(others) > 1 else []
        for wanted in (kept, *fewer):
            try:
                await self._alter(wanted)
            except ChangeRefusedError as refused:
                if not refused.is_of_dead:
                    raise
            else:
                return
        await self._alter(frozenset({self._set.own}))

    async def _alter(self, wanted: frozenset[int]) -> None:
        """Request a set from the controller; it also counts, until it is known to be refused.

        Raises:
            MqlakeError: the controller does not answer, or refuses.
        """
        self._set.ask(wanted)
        try:
            term = await self._group.alter(wanted, self._set.version)
        except ChangeRefusedError as refused:
            self.take(refused.term, is_answer=True)
            raise
        before = self._set.members
        self.take(term, is_answer=True)
        self._failure = None
        _log.info("in sync are the brokers %s, were %s", _text(term.members), _text(before))

    def _report(self, error: Exception) -> None:
        failure = str(error) if isinstance(error, MqlakeError) else repr(error)
        if failure != self._failure:
            _log.warning("the in-sync set is not changed at the controller: %s", failure)
            self._failure = failure

    def _tell(self) -> None:
        """Release puts that no longer wait for a slave; readers then see them."""
        self._store.copies.tell()
        self._store.copying.confirm()


def _text(members: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(members)))
