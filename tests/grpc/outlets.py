"""What a connection sends, without a connection."""

from __future__ import annotations

import asyncio

from mqlake.grpc.call import FinishedCall
from mqlake.grpc.http2 import frames
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.outlet import Flushes, Outlet


class Sent:
    """Keeps what is sent.

    Attributes:
        outlet: what calls send by.
        finished: the calls that have ended.
        flushes: how often a round of the loop was over in which something was sent.
        moved: the streams whose data was sent.
    """

    def __init__(self, limits: GrpcLimits | None = None) -> None:
        self.finished: list[FinishedCall] = []
        self.moved: list[int] = []
        self.flushes = 0
        shared = Flushes(asyncio.get_running_loop(), self.finished.append)
        self.outlet = Outlet(shared, limits or GrpcLimits(), self._flush, self.moved.extend)

    def _flush(self) -> None:
        self.flushes += 1

    def frames(self) -> list[tuple[int, int, bytes]]:
        """Return the type, the stream and the payload of each frame that may be sent now."""
        data, at = bytes(self.outlet.take()), 0
        found: list[tuple[int, int, bytes]] = []
        while at < len(data):
            start, _, stream = frames.HEAD.unpack_from(data, at)
            end = at + 9 + (start >> 8)
            found.append((start & 0xFF, stream, data[at + 9 : end]))
            at = end
        return found
