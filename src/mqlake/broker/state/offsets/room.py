"""The limit of offsets that groups may have, and each client's share of it."""

from __future__ import annotations

from collections import Counter

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.groups import Groups
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.shares import Shares
from mqlake.store.live_settings import Current
from mqlake.store.port import ConsumerOffsetTable


class OffsetRoom:
    """Counts offsets by the client that created their group; those of an older group by group."""

    def __init__(
        self, settings: Current[BrokerSettings], offsets: ConsumerOffsetTable, groups: Groups
    ) -> None:
        self._settings, self._offsets, self._groups = settings, offsets, groups
        self._shares = Shares(lambda: settings.now.max_address_share)
        # To whom the offsets of a group count as long as it has any, and how many it has: its
        # creator is forgotten before they are removed.
        self._owners: dict[str, str] = {}
        self._counts = Counter[str]()
        offsets.on_count(self._count)

    def _owner(self, group: str) -> str:
        return self._owners.get(group) or self._groups.creator(group) or f"group {group}"

    def _count(self, group: str, more: int) -> None:
        owner = self._owners.setdefault(group, self._owner(group))
        self._shares.add(owner, more)
        self._counts[group] += more
        if self._counts[group] <= 0:
            del self._counts[group], self._owners[group]

    def refusal(self, group: str, more: int = 1) -> str | None:
        """Return why a group may not have so many more offsets; None if it may."""
        used, most = len(self._offsets), self._settings.now.max_consumer_offset_nums
        if 2 * (used + more) <= most:
            return None
        owner = self._owner(group)
        return self._shares.refusal(owner, used, most, "maxConsumerOffsetNums", more)

    def has_room(self, group: str, more: int = 1) -> bool:
        """Return whether a group may have so many more offsets."""
        return self.refusal(group, more) is None

    def check(self, group: str, topic: str, more: int = 1) -> None:
        """Refuse offsets of a group in queues of a topic that would exceed the limit.

        Raises:
            RemotingError: there would be more than `maxConsumerOffsetNums`, or more than the share
                of the client that created the group.
        """
        if (refusal := self.refusal(group, more)) is not None:
            reason = (
                f"the offset of group {group} in topic {topic} is not stored: {refusal}; "
                "delete groups or topics, or raise the setting"
            )
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
