"""Tell the consumers of a group that one came or went, so that they share the queues anew.

Upstream: `Broker2Client.notifyConsumerIdsChanged`.
"""

from __future__ import annotations

import asyncio

from mqlake.broker.clients.members import ConsumerGroup
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import oneway
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.clients import ConsumerGroupHeader
from mqlake.remoting.slices import Job, Slices

_DELAY = 0.02
"""Seconds in which further changes of a group are told together with the first one.

Where many consumers come at once, each would tell all others of each."""


class Notices:
    """What is about to be told."""

    def __init__(self, slices: Slices) -> None:
        self._loop, self._slices = asyncio.get_running_loop(), slices
        self._groups: dict[str, ConsumerGroup] = {}
        self._is_due = False

    def tell(self, group: ConsumerGroup) -> None:
        """Tell all consumers that are in a group then, within a few milliseconds."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(_DELAY, self._begin)
        self._groups[group.group] = group

    def _begin(self) -> None:
        self._slices.start(self._send())

    def _send(self) -> Job[None]:
        """Tell the groups that have changed, those too that change meanwhile."""
        while self._groups:
            name = next(iter(self._groups))
            group = self._groups.pop(name)
            header = ConsumerGroupHeader(consumer_group=name)
            frame = encode(oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header))
            for client in list(group):
                client.peer.send(frame)
                yield
        self._is_due = False
