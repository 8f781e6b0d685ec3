"""Count the sends that the lane has served, as the ordinary path counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mqlake.broker.lane import layout
from mqlake.broker.lane.kernel import LaneKernel
from mqlake.broker.state.times import Durations
from mqlake.protocol.codes import RequestCode
from mqlake.remoting.connection import Peer
from mqlake.remoting.latencies import RequestKind
from mqlake.remoting.server import RemotingServer

_KINDS: Final = {
    0: RequestKind(int(RequestCode.SEND_MESSAGE_V2)),
    layout.OF_BATCHES: RequestKind(int(RequestCode.SEND_BATCH_MESSAGE)),
}
"""What is counted, by the first of its two rows."""
_NANOSECONDS: Final = 1e9


class LaneCounts:
    """Adds to the counts and durations of a broker."""

    def __init__(self, put_times: Durations, server: RemotingServer) -> None:
        self._put_times, self._server = put_times, server

    def add(self, kernel: LaneKernel, peer_of: Callable[[int], Peer | None]) -> None:
        """Add what the kernel has counted since.

        Args:
            peer_of: returns the connection with a number.
        """
        numbers, times = kernel.numbers, kernel.times
        if numbers[layout.LONGEST] <= layout.BINS[0]:  # As most are.
            sums = kernel.first_times
            for row, kind in _KINDS.items():
                if count := sums[row, 0]:
                    self._note(kind, sums[row + 1, 0] / count / _NANOSECONDS, count)
                    sums[row, 0] = sums[row + 1, 0] = 0
            numbers[layout.LONGEST] = 0
            return
        found = times.tolist()
        for row, kind in _KINDS.items():
            for count, total in zip(found[row], found[row + 1], strict=True):
                if count:
                    self._note(kind, total / count / _NANOSECONDS, count)
        times[:] = 0
        self._tell_slow(kernel, peer_of)
        numbers[layout.LONGEST] = 0

    def _note(self, kind: RequestKind, took: float, count: int) -> None:
        self._put_times.add(took, count)
        self._server.note_served(kind.request_code, took, count)

    def _tell_slow(self, kernel: LaneKernel, peer_of: Callable[[int], Peer | None]) -> None:
        latencies, longest = self._server.latencies, kernel.numbers[layout.LONGEST] / 1e6
        if latencies is not None and longest >= latencies.slow:
            peer = peer_of(kernel.numbers[layout.LONGEST_OF])
            address = peer.address if peer is not None else "not connected"
            batches = kernel.numbers[layout.LONGEST_BATCHES]
            others = kernel.numbers[layout.LONGEST_COUNT] - batches
            for kind, count in zip(_KINDS.values(), (others, batches), strict=True):
                if count:
                    latencies.tell(kind, longest, count, address)
