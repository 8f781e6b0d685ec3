"""The consumer groups that hold nothing: they expire, and make room for others if necessary.

A heartbeat, a pull or a pop of any client creates its group, so groups that nobody uses would
remain for ever. A group holds nothing if it has the configuration of a new group, no connected
consumer, no offset, no message to retry and no dead letter. Such a group and one that does not
exist are the same to everybody: its next consumer creates it again. Groups that an administrator
has created stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import islice
from typing import Final

from mqlake.broker.repeating import Repeating
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.clients.clients import Clients
from mqlake.broker.state.groups import Groups
from mqlake.broker.state.topics import BrokerTopics
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol import naming
from mqlake.remoting.slices import Job, Slices
from mqlake.store.live_settings import Current
from mqlake.store.port import Store

_INTERVAL: Final = 60.0
"""Seconds between searches for groups that hold nothing."""
_AT_ONCE: Final = 32
"""Maximum groups that are examined to make room for another one."""

_log = logging.getLogger(__name__)


class EmptyGroups:
    """Removes groups that hold nothing.

    Args:
        forget: called after groups were removed; forgets what was counted for those that do not
            exist. It examines all counts, so it is not called for each group.
    """

    def __init__(
        self,
        settings: Current[BrokerSettings],
        store: Store,
        groups: Groups,
        topics: BrokerTopics,
        clients: Clients,
        slices: Slices,
        *,
        forget: Callable[[], Job[None]],
    ) -> None:
        self._settings, self._store = settings, store
        self._groups, self._topics, self._clients = groups, topics, clients
        self._slices, self._forget = slices, forget
        # Groups that were empty when they were examined, and since when (ms).
        self._since: dict[str, int] = {}
        self._removed = self._forgotten = 0

    def start(self, repeating: Repeating) -> None:
        """Look for empty groups from now on."""
        repeating.every(_INTERVAL, lambda: self._slices.start(self.expire()))

    def expire(self) -> Job[None]:
        """Remove the groups that have held nothing for `emptyGroupExpiredTimeout`."""
        timeout = self._settings.now.empty_group_expired_timeout
        before = self._removed
        for name in list(self._groups):
            if not self._is_empty(name):
                self._since.pop(name, None)
            else:
                now = self._store.clock.milliseconds()
                since = self._since.setdefault(name, now)
                if timeout and now - since >= timeout:
                    self._remove(name)
            yield
        for name in [name for name in self._since if name not in self._groups]:
            del self._since[name]
        if self._removed > before:
            _log.info(
                "%d groups held nothing for %d ms (emptyGroupExpiredTimeout) and are removed",
                self._removed - before,
                timeout,
            )
        if self._removed > self._forgotten:
            self._forgotten = self._removed
            yield from self._forget()

    def _is_empty(self, name: str) -> bool:
        group, settings = self._groups.get(name), self._settings.now
        if group != SubscriptionGroup(group_name=name) or name in self._clients.consumers:
            return False
        is_fixed = settings.is_slave or not settings.auto_create_subscription_group
        if is_fixed or name in naming.SYSTEM_GROUPS or self._groups.is_forbidden_any(name):
            return False
        if self._store.config.consumer_offsets.has_any(name):
            return False
        return not any(map(self._has_messages, (naming.retry_topic(name), naming.dlq_topic(name))))

    def _has_messages(self, topic: str) -> bool:
        if self._store.reads.queues(topic):
            return True
        ends = self._store.offsets  # Those of messages that were put just now, too.
        return any((topic, number) in ends for number in range(self._topics.queues(topic)))

    def _remove(self, name: str) -> None:
        """Remove an empty group and its retry topic, which is empty as well."""
        self._since.pop(name, None)
        self._groups.remove(name)
        self._topics.remove(naming.retry_topic(name))
        self._removed += 1

    def deleted(self, group: str) -> None:
        """Forget since when a group was empty: one of the same name begins again."""
        self._since.pop(group, None)

    def left(self, group: str) -> None:
        """Note that a group has lost its last consumer."""
        if group in self._groups:
            self._since.setdefault(group, self._store.clock.milliseconds())

    def make_room(self) -> bool:
        """Remove the group that has been empty for the longest; return whether there was one."""
        for name in list(islice(self._since, _AT_ONCE)):
            if self._is_empty(name):
                self._remove(name)
                _log.info("group %s held nothing, and makes room for another one", name)
                return True
            del self._since[name]
        return False
