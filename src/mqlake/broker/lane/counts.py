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

_KIND: Final = RequestKind(int(RequestCode.SEND_MESSAGE_V2))
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
            count, sums = numbers[layout.MESSAGES], kernel.first_times
            self._note(sums[1, 0] / count / _NANOSECONDS, count)
            sums[0, 0] = sums[1, 0] = numbers[layout.LONGEST] = 0
            return
        counts, sums = times.tolist()
        for count, total in zip(counts, sums, strict=True):
            if count:
                self._note(total / count / _NANOSECONDS, count)
        times[:] = 0
        self._tell_slow(kernel, peer_of)
        numbers[layout.LONGEST] = 0

    def _note(self, took: float, count: int) -> None:
        self._put_times.add(took, count)
        self._server.note_served(_KIND.request_code, took, count)

    def _tell_slow(self, kernel: LaneKernel, peer_of: Callable[[int], Peer | None]) -> None:
        latencies, longest = self._server.latencies, kernel.numbers[layout.LONGEST] / 1e6
        if latencies is not None and longest >= latencies.slow:
            peer = peer_of(kernel.numbers[layout.LONGEST_OF])
            address = peer.address if peer is not None else "not connected"
            latencies.tell(_KIND, longest, kernel.numbers[layout.LONGEST_COUNT], address)
