"""The memory that is held for one connection, and since when nothing has moved there."""

from __future__ import annotations

from mqlake.grpc.http2.frame_decoder import FrameDecoder
from mqlake.grpc.http2.header_blocks import HeaderBlocks
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.served_calls import ServedCalls
from mqlake.remoting.greed import REQUEST, greed_of, greed_of_requests


class HeldMemory:
    """Measures what a connection holds, for the `MemoryBudget` of its server.

    Args:
        decoder, headers: the bytes that have yet to be served.
        calls: the calls that are served.
        outlet: the bytes of requests and responses.

    Attributes:
        is_held_back: whether nothing is read because the budget is exceeded.
    """

    def __init__(
        self, decoder: FrameDecoder, headers: HeaderBlocks, calls: ServedCalls, outlet: Outlet
    ) -> None:
        self._decoder, self._headers, self._calls, self._outlet = decoder, headers, calls, outlet
        self.is_held_back = False
        self._read_since = self._choked_since = 0.0

    def size(self, unsent: int) -> int:
        """Return how many bytes are held.

        Args:
            unsent: bytes that were written to a client that does not read.
        """
        outlet, decoder = self._outlet, self._decoder
        return (
            decoder.incomplete
            + decoder.unread
            + self._headers.held
            + self._calls.count * REQUEST
            + outlet.partial
            + outlet.served
            + outlet.size
            + outlet.windows.waiting
            + unsent
        )

    def greed(self, now: float, grace: float, unsent: int) -> float:
        """Return how much is held, times the cube of how long it has stood still.

        Args:
            now: the loop time.
            grace: seconds of not moving that do not count.
            unsent: as for `size`.
        """
        outlet, decoder, headers = self._outlet, self._decoder, self._headers
        greed = greed_of_requests(self._calls.count * REQUEST + outlet.served, grace)
        if self.is_held_back and grace:
            return greed
        since = max(self._read_since, outlet.moved) if grace else outlet.began
        greed += greed_of(outlet.partial, since, now, grace)
        greed += greed_of(decoder.incomplete, decoder.began, now, grace)
        greed += greed_of(headers.held, headers.began, now, grace)
        if outlet.windows.waiting:
            since = outlet.windows.moved if grace else outlet.windows.began
            greed += greed_of(outlet.windows.waiting, since, now, grace)
        if outlet.is_choked:
            size = outlet.size + unsent + decoder.unread
            greed += greed_of(size, self._choked_since, now, grace)
        return greed

    def hold_back(self) -> None:
        """Note that nothing is read any more: requests that do not continue are not its fault."""
        self.is_held_back = True

    def go_on(self, now: float) -> None:
        """Note that reading has been resumed."""
        self.is_held_back, self._read_since = False, now

    def note_choked(self, now: float) -> None:
        """Note that the client does not read what was written."""
        self._choked_since = now
