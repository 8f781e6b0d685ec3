"""The consumer groups of a broker: those that it creates itself, and those that consumers create.

Upstream: `SubscriptionGroupManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

import msgspec

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.creators import Creators
from mqlake.formats.config import DataVersion
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol import naming
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.logic_queues.plans import MOST_QUEUES
from mqlake.remoting.slices import Job
from mqlake.store.config.config_entries import GroupTable
from mqlake.store.live_settings import Current

_log = logging.getLogger(__name__)


class Groups:
    """The consumer groups of one broker. Every change is stored.

    Args:
        make_room: called if there is no room for another group; removes one that holds nothing, and
            returns whether there was one.
        creators: limits what addresses and users create.
    """

    def __init__(
        self,
        settings: Current[BrokerSettings],
        table: GroupTable,
        make_room: Callable[[], bool],
        creators: Creators,
    ) -> None:
        self._creators = creators
        self._settings, self._table, self._make_room = settings, table, make_room
        self._make_own()
        settings.on_change(self._make_own, "broker_role")
        for group in [group for name in table if (group := table.get(name)) is not None]:
            if (bounded := _bounded(group)) != group:
                _log.warning(
                    "group %s: config/subscriptionGroup.json says retryQueueNums %d; the "
                    "broker uses %d",
                    group.group_name,
                    group.retry_queue_nums,
                    bounded.retry_queue_nums,
                )
                table.put(bounded)

    def _make_own(self) -> None:
        """Create the groups that a master has from the start; a slave has its master's."""
        if self._settings.now.is_slave:
            return
        for name in naming.SYSTEM_GROUPS:
            if name not in self._table:
                self._table.put(SubscriptionGroup(group_name=name))

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    @property
    def version(self) -> DataVersion:
        """How often the groups were changed, and when they were changed last."""
        return self._table.version

    def get(self, name: str) -> SubscriptionGroup | None:
        """Return a group, None if no group has this name."""
        return self._table.get(name)

    def creator(self, name: str) -> str | None:
        """Return to whom a group counts that a client has created since the start."""
        return self._creators.creator(name)

    def get_or_make(self, name: str, address: str = "") -> SubscriptionGroup | None:
        """Return a group; if it does not exist, create it if settings and its name allow that.

        Upstream: `findSubscriptionGroupConfig`.

        Args:
            address: the "host:port" of the client to whose share the group counts.

        Raises:
            RemotingError: there are too many groups, or too many of this client.
        """
        found = self.get(name)
        if found is not None:
            return found
        settings = self._settings.now
        is_system = name.startswith(naming.SYSTEM_GROUP_PREFIX) and settings.enable_create_sys_group
        if not (settings.auto_create_subscription_group or is_system):
            return None
        if naming.group_fault(name) is not None:
            return None
        found = SubscriptionGroup(group_name=name)
        if settings.is_slave:
            return found  # Not stored: groups are created at the master.
        self._create(found, address)
        return found

    def _create(self, group: SubscriptionGroup, client: str) -> None:
        """Create a group of a client, perhaps in place of a group that holds nothing.

        Raises:
            RemotingError: there are too many groups, or too many of this client.
        """
        self._creators.check(client)
        most, used = self._settings.now.max_subscription_group_nums, len(self._table)
        refusal = self._creators.refusal(client, used, most, "maxSubscriptionGroupNums")
        if refusal is not None and not self._make_room():
            raise self._refused(group.group_name, refusal)
        _log.info("group %s made", group.group_name)
        self._table.put(group)
        self._creators.add(group.group_name, client)

    def check_room(self, name: str) -> None:
        """Refuse a group that would exceed the limit.

        Raises:
            RemotingError: there are `maxSubscriptionGroupNums` already, and this is not one of
                them.
        """
        most = self._settings.now.max_subscription_group_nums
        if len(self._table) >= most and name not in self._table and not self._make_room():
            reason = f"there are {most} already (maxSubscriptionGroupNums)"
            raise self._refused(name, reason)

    def _refused(self, name: str, reason: str) -> RemotingError:
        return RemotingError(
            ResponseCode.SYSTEM_ERROR,
            f"group[{name}] is not created: {reason}; delete groups, or raise the setting",
        )

    def is_forbidden_any(self, name: str) -> bool:
        """Return whether a group must not do something with any topic."""
        return self._table.is_forbidden_any(name)

    def forbidden(self, name: str, topic: str) -> int:
        """Return what a group must not do with a topic: a sum of PERM_* bits."""
        return self._table.forbidden(name, topic)

    def forbid(self, name: str, topic: str, bits: int) -> None:
        """Set what a group must not do with a topic."""
        self._table.forbid(name, topic, bits)

    @property
    def forbidden_count(self) -> int:
        """The number of topics of groups for which something is forbidden."""
        return self._table.forbidden_count

    def forbidden_table(self) -> dict[str, dict[str, int]]:
        """Return what groups must not do, by group and topic."""
        return self._table.forbidden_table()

    def topic_ended(self, topic: str) -> Job[None]:
        """Forget what groups must not do with a topic: another one may get its name."""
        for group in list(self._table.forbidden_table()):
            self._table.forbid(group, topic, 0)
            yield

    def group_ended(self, group: str) -> Job[None]:  # noqa: ARG002
        """Do nothing: what a group must not do was removed together with it."""
        yield from ()

    def follow(
        self,
        groups: Mapping[str, SubscriptionGroup],
        forbidden: Mapping[str, Mapping[str, int]],
        version: DataVersion,
    ) -> Job[None]:
        """Replace all groups, what they must not do, and their version by those of a master.

        A bit at a time.
        """
        bounded: dict[str, SubscriptionGroup] = {}
        for name, group in groups.items():
            bounded[name] = _bounded(group)
            yield
        yield from self._table.follow(bounded, version)
        self._table.follow_forbidden(forbidden)
        yield from self._creators.keep(bounded)

    def put(self, group: SubscriptionGroup) -> None:
        """Create or change a group."""
        self._table.put(group)

    def remove(self, name: str) -> bool:
        """Remove a group; return whether it existed."""
        self._creators.remove(name)
        return self._table.remove(name)


def _bounded(group: SubscriptionGroup) -> SubscriptionGroup:
    """Return a group whose retry topic has no more queues than can be handled."""
    queues = max(0, min(group.retry_queue_nums, MOST_QUEUES))
    if queues == group.retry_queue_nums:
        return group
    return msgspec.structs.replace(group, retry_queue_nums=queues)
