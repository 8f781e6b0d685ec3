"""Which part of a master's log its slaves have, and how many of them a put waits for.

Upstream: `HAService`, `GroupTransferService`, `CommitLog.handleHA`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqlake.store.live_settings import Current
from mqlake.store.settings import BrokerRole, StoreSettings


@dataclass(eq=False)
class Copy:
    """One slave's copy of the log.

    Attributes:
        acknowledged: physical offset before which the slave says that it has every byte.
        is_proven: it has acknowledged bytes that were sent to it. Before that, its log may be
            another one: a put must not count on it.
    """

    acknowledged: int
    is_proven: bool = False


class Copies:
    """The copies of one store's log on connected slaves. For the store's thread.

    Args:
        end: returns the physical offset at which this store's log ends.

    Attributes:
        is_served: somebody listens for slaves, so that they can be waited for.
        changed: called when a copy came, went, or grew.
    """

    def __init__(self, settings: Current[StoreSettings], end: Callable[[], int]) -> None:
        self._settings, self._end = settings, end
        self._copies: list[Copy] = []
        self.is_served = False
        self.changed: Callable[[], object] | None = None

    @property
    def are_counted(self) -> bool:
        """Whether puts may have to wait for slaves.

        In a broker that was demoted, those that it has not acknowledged yet: nothing confirms them.
        """
        return self.is_served and self._settings.now.broker_role is not BrokerRole.ASYNC_MASTER

    def join(self, offset: int) -> Copy:
        """Count a slave that asks for the log from a physical offset on."""
        copy = Copy(offset)
        self._copies.append(copy)
        self._tell()
        return copy

    def leave(self, copy: Copy) -> None:
        """Count a slave no longer."""
        self._copies.remove(copy)
        self._tell()

    def acknowledge(self, copy: Copy, offset: int) -> None:
        """Note that a slave has the log up to a physical offset, which was sent to it."""
        if offset > copy.acknowledged:
            copy.acknowledged, copy.is_proven = offset, True
            self._tell()

    @property
    def in_sync(self) -> int:
        """How many slaves lack at most `haMaxGapNotInSync` bytes of the log."""
        least = self._end() - self._settings.now.ha_max_gap_not_in_sync
        return sum(copy.acknowledged >= least for copy in self._copies)

    @property
    def needed(self) -> int:
        """How many slaves must have a message before it is acknowledged."""
        settings = self._settings.now
        if not self.are_counted:
            return 0
        wanted = settings.in_sync_replicas
        if settings.enable_auto_in_sync_replicas:
            wanted = min(wanted, max(1 + self.in_sync, settings.min_in_sync_replicas))
        return wanted - 1

    @property
    def confirmed(self) -> int:
        """Physical offset before which as many slaves as are needed have the log.

        Where no slave is needed, that is the log's end.
        """
        needed = self.needed
        if needed <= 0:
            return self._end()
        proven = sorted(
            (copy.acknowledged for copy in self._copies if copy.is_proven), reverse=True
        )
        return proven[needed - 1] if needed <= len(proven) else 0

    @property
    def missing(self) -> str | None:
        """Why a message cannot be copied to enough slaves now; None if it can."""
        needed, in_sync = self.needed, self.in_sync
        if in_sync >= needed:
            return None
        return f"inSyncReplicas asks for {needed} slaves, and {in_sync} are in sync"

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed()
