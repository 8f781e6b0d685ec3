"""Put messages into the log, one or many, each call by one compiled function."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mqlake.dispatch.kernel import is_compiled
from mqlake.formats.host import V4_SIZE, V6_SIZE

PutMessages = Callable[..., int]
"""put_messages(log, at, room_end, base, room, packed messages, position, most, now, delays, state,
ends, out): write and publish records, as `mqlake.dispatch.compiled.put_messages`
says.

The caller passes exactly: writable arrays of bytes for log and state, writable arrays of
i8 for ends and out, `bytes` for the packed messages, and numbers.
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
    from mqlake.kernels.entry_point import BYTES, DATA, INT, LONGS, entry_point

    position = BYTES, INT, INT, INT, INT
    packed = DATA, INT, INT, INT, INT
    return entry_point(put_messages.put_messages, *position, *packed, BYTES, LONGS, LONGS)


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
