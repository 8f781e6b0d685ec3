"""What the connections of one server or client share: writing together, memory, idle time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mqlake.remoting import json_header
from mqlake.remoting.complaints import Complaints
from mqlake.remoting.header import Header
from mqlake.remoting.limits import Limits

if TYPE_CHECKING:
    from mqlake.remoting.connection import Peer, TakePeersRun


class Shared:
    """The connections of one server or client on one event loop.

    Attributes:
        peers: those that are open.
        runs: what serves runs of frames with binary headers, by the request code in their first.
        buffered: bytes of frames begun but not yet complete, over all of them.
        last_read: the one that something came in from last.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        typed: Mapping[int, type[Header]] | None = None,
        runs: Mapping[int, TakePeersRun] | None = None,
    ) -> None:
        self.loop = loop
        self.limits = limits
        self.complaints = Complaints(loop.time)
        self.decode_json = json_header.decode_typed(typed or {})
        self.runs = {code.to_bytes(2): take for code, take in (runs or {}).items()}
        self.peers: set[Peer] = set()
        self.buffered = 0
        self.last_read: Peer | None = None
        self._writers: list[Peer] = []

    def opened(self, peer: Peer) -> bool:
        """Count a connection; say whether there may be so many."""
        self.peers.add(peer)
        return len(self.peers) <= self.limits.connections

    def lost(self, peer: Peer) -> None:
        """Forget a connection."""
        self.peers.discard(peer)
        if self.last_read is peer:
            self.last_read = None

    def will_write(self, peer: Peer) -> None:
        """Flush a connection once this round of the loop is over."""
        if not self._writers:
            self.loop.call_soon(self.flush)
        self._writers.append(peer)

    def flush(self) -> None:
        """Write what was sent on all connections, one write each."""
        writers, self._writers = self._writers, []
        for peer in writers:
            peer.flush()
