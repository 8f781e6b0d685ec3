"""The in-sync set: the brokers of one name that the controller may elect as the next master.

A master acknowledges what all of them have. So every broker that can be elected has everything
that was acknowledged. Upstream: `AutoSwitchHAService`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class InSyncSet:
    """The brokers that have a master's log according to the master, and what they have of it.

    The controller keeps the set. While the controller is requested to change it, both the old
    and the new set count: which of them the controller uses is unknown.

    Args:
        own: this master's broker id.

    Attributes:
        members: the ids in the set, including this master's, as the controller last reported.
        version: the controller's number of that set, its "epoch".
        confirmed: physical offset before which every member had the log; it never decreases.
    """

    def __init__(self, own: int, confirmed: int = 0) -> None:
        self.own = own
        self.members = frozenset((own,))
        self.version = 0
        self.confirmed = confirmed
        self._asked: frozenset[int] = frozenset()
        self._joining: dict[int, int] = {}

    @property
    def counted(self) -> frozenset[int]:
        """The ids of all slaves that must have a message before it is acknowledged."""
        return (self.members | self._asked | self._joining.keys()) - {self.own}

    @property
    def is_uncertain(self) -> bool:
        """Whether it is unknown which set the controller uses."""
        return bool(self._asked - self.members)

    def update(self, acknowledged: Mapping[int, int], end: int) -> int:
        """Return the physical offset up to which every counted broker has the log.

        Args:
            acknowledged: the offset up to which each connected slave has it, by broker id.
            end: physical offset up to which this master has it.
        """
        offsets = [acknowledged.get(each, -1) for each in self.counted]
        self.confirmed = max(self.confirmed, min([end, *offsets]))
        return self.confirmed

    def join(self, broker_id: int) -> None:
        """Count a slave that has nearly everything: it may become a member once it has the rest.

        It may still lack messages that were acknowledged before now; as a member it must have them.
        """
        if broker_id not in self.counted and broker_id != self.own:
            self._joining[broker_id] = self.confirmed

    def leave(self, broker_id: int) -> None:
        """Stop counting a joining slave. Members count until they are removed."""
        self._joining.pop(broker_id, None)

    def ready(self, acknowledged: Mapping[int, int]) -> frozenset[int]:
        """Return the joining slaves that have everything that was acknowledged so far."""
        joining = self._joining.items()
        return frozenset(each for each, least in joining if acknowledged.get(each, -1) >= least)

    def ask(self, members: Iterable[int]) -> None:
        """Note that the controller is requested to use this set: it may use it from now on."""
        self._asked |= frozenset(members)

    def set(self, members: Iterable[int], version: int, *, is_answer: bool = False) -> bool:
        """Adopt the controller's set; return whether it has changed.

        Args:
            version: an older version than the known one changes nothing.
            is_answer: no request is open any more: each was executed, or never will be.
        """
        if version < self.version:
            return False
        if is_answer or version > self.version:
            self._asked = frozenset()
        before, self.members, self.version = self.members, frozenset(members), version
        for each in self.members:
            self._joining.pop(each, None)
        return self.members != before
