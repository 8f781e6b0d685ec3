"""Notify the consumers of a group that one joined or left, so that they rebalance.

Upstream: `Broker2Client.notifyConsumerIdsChanged`.
"""

from __future__ import annotations

import asyncio

from mqlake.broker.state.clients.members import ConsumerGroup
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import oneway
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.clients import ConsumerGroupHeader
from mqlake.remoting.slices import Job, Slices

_DELAY = 0.02
"""Seconds within which further changes of a group are notified together with the first one.

If many consumers join at the same time, each would otherwise notify all others."""


class Notices:
    """Pending notifications."""

    def __init__(self, slices: Slices) -> None:
        self._loop, self._slices = asyncio.get_running_loop(), slices
        self._groups: dict[str, ConsumerGroup] = {}
        self._is_due = False

    def tell(self, group: ConsumerGroup) -> None:
        """Notify all current consumers of a group within a few milliseconds."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(_DELAY, self._begin)
        self._groups[group.group] = group

    def _begin(self) -> None:
        self._slices.start(self._send())

    def _send(self) -> Job[None]:
        """Notify the groups that have changed, including those that change meanwhile."""
        while self._groups:
            name = next(iter(self._groups))
            group = self._groups.pop(name)
            header = ConsumerGroupHeader(consumer_group=name)
            frame = encode(oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header))
            for client in list(group):
                client.peer.send(frame)
                yield
        self._is_due = False
