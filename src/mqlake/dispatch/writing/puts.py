"""Put messages into the log, one or many, each call by one compiled function."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from mqlake.dispatch.batch import Bytes, Longs
from mqlake.dispatch.kernel import is_compiled
from mqlake.dispatch.writing import packed_layout as layout
from mqlake.formats.host import V4_SIZE, V6_SIZE

PutMessages = Callable[..., int]
"""put_messages(places, at, room_end, base, room, packed messages, position, most, now, delays):
write and publish records, as `mqlake.dispatch.compiled.put_messages` says.

The caller passes exactly `bytes` for the packed messages, and numbers; the places are those of
`ArrayPlaces`.
"""

pack = msgspec.msgpack.Encoder().encode
"""Return (LEAD, message or messages) for `PutMessages`: structs that msgspec packs as lists of
`packed_layout.FIELDS`.
"""


def load_messages() -> PutMessages | None:
    """Return the compiled function; None without compiled kernels."""
    if not is_compiled():
        return None
    from mqlake.dispatch.compiled import put_messages
    from mqlake.kernels.entry_point import DATA, INT, entry_point

    return entry_point(put_messages.put_messages, *[INT] * 5, DATA, *[INT] * 4)


class ArrayPlaces:
    """Where the arrays of calls of `PutMessages` are. It holds them.

    Attributes:
        address: what the kernel is called with.
        log, ends: the arrays that were placed last.

    Args:
        state: u1[n], out: i8[n]: the arrays that stay the same.
    """

    def __init__(self, state: Bytes, out: Longs) -> None:
        self.log: Bytes = np.empty(0, np.uint8)
        self.ends: Longs = np.empty(0, np.int64)
        self._stay = state, out
        self._places = np.zeros(layout.PLACES_SIZE, np.int64)
        self.address = self._places.ctypes.data
        self._place(layout.STATE, state)
        self._place(layout.OUT, out)

    def place(self, log: Bytes, ends: Longs) -> None:
        """Let calls write to this file of the log, and count up these ends of queues."""
        self._place(layout.LOG, log)
        self._place(layout.ENDS, ends)
        self.log, self.ends = log, ends

    def _place(self, at: int, array: Bytes | Longs) -> None:
        assert array.flags.c_contiguous, "a kernel would write elsewhere"
        self._places[at], self._places[at + layout.LENGTH] = array.ctypes.data, len(array)


def make_route(
    *,
    queue_id: int,
    magic: int,
    part: bytes,
    longest_body: int,
    crc_size: int,
    host: bytes,
) -> bytes:
    """Return what records of a queue have in common, from the store's own host.

    For `mqlake.dispatch.compiled.put_sent`.

    Args:
        part: the topic as a record has it: its length, and its bytes.
        longest_body: maximum bytes of a body.
        crc_size: bytes of the record CRC in properties, 0 for none.
        host: of the store: 8 or 20 bytes.
    """
    assert len(host) in (V4_SIZE, V6_SIZE)
    numbers = (queue_id, magic, longest_body, crc_size, len(host), len(host), len(part))
    hosts = [host.ljust(_HOST_ROOM, b"\0")] * 2
    return b"".join([*(number.to_bytes(8, "big") for number in numbers), *hosts, part])


_HOST_ROOM = 24
"""Bytes for a host in a route."""
