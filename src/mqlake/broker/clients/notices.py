"""Tell the consumers of a group that one came or went, so that they share the queues anew.

Upstream: `Broker2Client.notifyConsumerIdsChanged`.
"""

from __future__ import annotations

import asyncio

from mqlake.broker.clients.members import ConsumerGroup
from mqlake.remoting.codes import RequestCode
from mqlake.remoting.command import oneway
from mqlake.remoting.headers.clients import ConsumerGroupHeader

_DELAY = 0.02
"""Seconds in which further changes of a group are told together with the first one.

Where many consumers come at once, each would tell all others of each."""


class Notices:
    """What is about to be told."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._groups: dict[str, ConsumerGroup] = {}

    def tell(self, group: ConsumerGroup) -> None:
        """Tell all consumers that are in a group then, within a few milliseconds."""
        if not self._groups:
            self._loop.call_later(_DELAY, self._send)
        self._groups[group.group] = group

    def _send(self) -> None:
        groups, self._groups = self._groups, {}
        for name, group in groups.items():
            for client in group:
                header = ConsumerGroupHeader(consumer_group=name)
                client.peer.send(oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header))
