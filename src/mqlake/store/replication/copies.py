"""Which part of a master's log its slaves have, and how many of them a put waits for.

Upstream: `HAService`, `GroupTransferService`, `CommitLog.handleHA`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqlake.store.live_settings import Current
from mqlake.store.replication.in_sync_set import InSyncSet
from mqlake.store.settings import BrokerRole, StoreSettings


@dataclass(eq=False)
class Copy:
    """One slave's copy of the log.

    Attributes:
        acknowledged: physical offset before which the slave reports that it has every byte.
        is_proven: whether it has acknowledged bytes that were sent to it. Before that, its log may
            be another one, and no put may count on it.
        broker_id: the id of the slave; only under a controller.
    """

    acknowledged: int
    is_proven: bool = False
    broker_id: int | None = None


class Copies:
    """The copies of one store's log on connected slaves. For the store's thread.

    Args:
        end: returns the physical offset at which this store's log ends.

    Attributes:
        is_served: whether slaves can connect, so that puts may wait for them.
        in_sync_set: on a master under a controller: the brokers that may be elected.
        followed: on a slave under a controller: physical offset up to which its master has
            confirmed the log.
    """

    def __init__(self, settings: Current[StoreSettings], end: Callable[[], int]) -> None:
        self._settings, self._end = settings, end
        self._copies: list[Copy] = []
        self.is_served = False
        self._waiting: Callable[[], object] | None = None
        self.in_sync_set: InSyncSet | None = None
        self.followed: int | None = None

    def on_change(self, waiting: Callable[[], object]) -> None:
        """Call a function, and no other, when a copy has joined, left, or grown."""
        self._waiting = waiting

    def serve(self) -> None:
        """Let slaves connect, so that puts may wait for them."""
        self.is_served = True

    def lead(self, in_sync_set: InSyncSet) -> None:
        """Count the brokers that may be elected: this one is the master under a controller."""
        self.in_sync_set, self.followed = in_sync_set, None

    def follow(self, confirmed: int | None) -> None:
        """Show what the master under a controller has confirmed: nothing new while it is None.

        Args:
            confirmed: physical offset.
        """
        self.in_sync_set, self.followed = None, confirmed

    def note_confirmed(self, physical_offset: int) -> None:
        """Note that the master has confirmed the log up to a physical offset."""
        self.followed = max(self.followed or 0, physical_offset)

    def release(self) -> None:
        """Show everything: no controller decides any more."""
        self.in_sync_set = self.followed = None

    @property
    def shown(self) -> int | None:
        """Physical offset before which messages may be read; None if all of them may.

        Under a controller, messages that some broker lacks that may be elected may be lost later.
        """
        if self.in_sync_set is not None:
            return self._in_whole_set(self.in_sync_set)
        return self.followed

    @property
    def acknowledged(self) -> dict[int, int]:
        """The physical offset up to which each connected slave has the log, by broker id."""
        found: dict[int, int] = {}
        for copy in self._copies:
            if copy.broker_id is not None and copy.is_proven:
                found[copy.broker_id] = copy.acknowledged
        return found

    def _in_whole_set(self, in_sync_set: InSyncSet) -> int:
        return in_sync_set.update(self.acknowledged, self._end())

    @property
    def are_counted(self) -> bool:
        """Whether puts may have to wait for slaves.

        On a demoted broker, nothing confirms the puts that it has not acknowledged yet.
        """
        return self.is_served and self._settings.now.broker_role is not BrokerRole.ASYNC_MASTER

    def join(self, offset: int, broker_id: int | None = None) -> Copy:
        """Count a slave that requests the log from a physical offset on.

        Args:
            broker_id: under a controller, if its log is known to equal this one up to the offset.
        """
        copy = Copy(offset, broker_id is not None, broker_id)
        self._copies.append(copy)
        self.tell()
        return copy

    def leave(self, copy: Copy) -> None:
        """Stop counting a slave."""
        self._copies.remove(copy)
        self.tell()

    def acknowledge(self, copy: Copy, offset: int) -> None:
        """Note that a slave has the log up to a physical offset that was sent to it."""
        if offset > copy.acknowledged:
            copy.acknowledged, copy.is_proven = offset, True
            self.tell()

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
        """Physical offset before which as many slaves as needed have the log.

        If no slave is needed, it is the log's end.
        """
        if self.followed is not None:
            return 0  # What was put before another broker was elected may be cut off.
        if self.in_sync_set is not None:
            if self._missing_in(self.in_sync_set) is not None:
                return 0
            if self._settings.now.all_ack_in_sync_state_set:
                return self._in_whole_set(self.in_sync_set)
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
        if self.followed is not None:
            return "another broker is the master now"
        if self.in_sync_set is not None:
            return self._missing_in(self.in_sync_set)
        needed, in_sync = self.needed, self.in_sync
        if in_sync >= needed:
            return None
        return f"inSyncReplicas requires {needed} slaves, but only {in_sync} are in sync"

    def _missing_in(self, in_sync_set: InSyncSet) -> str | None:
        """Return why the in-sync set is too small. Slaves that lag may leave it soon."""
        least, size = self._settings.now.min_in_sync_replicas, len(in_sync_set.members)
        if size >= least:
            return None
        return f"minInSyncReplicas requires {least} brokers in sync, but there are {size}"

    def tell(self) -> None:
        """Notify waiters that other slaves count, or that slaves have more."""
        if self._waiting is not None:
            self._waiting()
