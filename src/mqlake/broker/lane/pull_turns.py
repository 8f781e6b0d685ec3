"""Pulls in the turns of the lane: what is done before and after each call of its kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mqlake.broker.lane import pull_layout as layout
from mqlake.broker.lane.pulls import LanePulls
from mqlake.protocol.codes import RequestCode
from mqlake.remoting.connection import Peer
from mqlake.remoting.latencies import RequestKind
from mqlake.remoting.server import RemotingServer

_KIND: Final = RequestKind(int(RequestCode.PULL_MESSAGE))
_NANOSECONDS: Final = 1e9


class PullTurns:
    """Serves usual pulls of connections that the lane reads.

    Args:
        peer_of: returns the connection with a number.
    """

    def __init__(
        self, pulls: LanePulls, server: RemotingServer, peer_of: Callable[[int], Peer | None]
    ) -> None:
        self._pulls, self._server, self._peer_of = pulls, server, peer_of
        self._numbers = pulls.tables.arrays.state.data
        self._is_expected = self._has_served = False

    def begin(self) -> None:
        """Begin a turn. To prepare pulls takes as long as a send: it is done if some are expected,
        because the last turn had some, or one has arrived.
        """
        self._is_expected, self._has_served = self._has_served, False

    def expect(self) -> bool:
        """Expect pulls for the rest of this turn; return whether they may be served."""
        self._is_expected = self._pulls.is_ready
        return self._is_expected

    def prepare(self) -> None:
        """Prepare a call of the kernel."""
        may_serve = self._is_expected and self._pulls.is_ready
        self._numbers[layout.MAY_SERVE] = may_serve
        if may_serve:
            self._pulls.renew()

    def note(self) -> None:
        """Note what the kernel has served."""
        numbers = self._numbers
        if not numbers[layout.NOTES]:
            return
        self._has_served = True
        took, waited = numbers[layout.TOOK], numbers[layout.WAITED]
        count = self._pulls.apply(took / _NANOSECONDS)
        self._server.note_served(_KIND.request_code, waited / count / _NANOSECONDS, count)
        self._tell_slow()
        for number in (layout.TOOK, layout.WAITED, layout.LONGEST):
            numbers[number] = 0

    def _tell_slow(self) -> None:
        latencies, longest = self._server.latencies, self._numbers[layout.LONGEST] / 1e6
        if latencies is not None and longest >= latencies.slow:
            peer = self._peer_of(self._numbers[layout.LONGEST_OF])
            address = peer.address if peer is not None else "not connected"
            latencies.tell(_KIND, longest, self._numbers[layout.LONGEST_COUNT], address)

    def ask(self, peer: Peer, data: bytes) -> bool:
        """Find out what the kernel asks for; return whether it may be called again.

        If not, the ordinary path serves the pull.

        Args:
            data: begins with the frame of the pull.
        """
        reason = self._numbers[layout.REASON]
        if reason >= layout.NEW and self._pulls.ask(reason, peer, data, 0):
            return True
        self._pulls.leave_next(peer)
        return False
