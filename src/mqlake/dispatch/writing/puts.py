"""Put messages into the log, one or many, each call by one compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mqlake.dispatch.kernel import is_compiled
from mqlake.formats.host import V4_SIZE, V6_SIZE

if TYPE_CHECKING:
    from mqlake.kernels.kept_arguments import KeptArguments

PutMessages = Callable[..., int]
"""put_messages(address, at, room_end, base, room, packed messages, position, most, now, delays):
write and publish records, as `mqlake.dispatch.compiled.put_messages` says.

The caller passes exactly `bytes` for the packed messages, and numbers.
"""

pack = msgspec.msgpack.Encoder().encode
"""Return (LEAD, message or messages) for `PutMessages`: structs that msgspec packs as lists of
`packed_layout.FIELDS`.
"""


class PutKernel(NamedTuple):
    """The compiled function, and what is kept for it.

    Attributes:
        kept: (log, ends, state, out), the arrays of the calls, to which `address` leads.
    """

    put_messages: PutMessages
    kept: KeptArguments


def load_messages() -> PutKernel | None:
    """Return the compiled function; None without compiled kernels."""
    if not is_compiled():
        return None
    from mqlake.dispatch.compiled import put_messages
    from mqlake.kernels.entry_point import DATA, INT, entry_point
    from mqlake.kernels.kept_arguments import KeptArguments

    compiled = entry_point(put_messages.put_messages, *[INT] * 5, DATA, *[INT] * 4)
    return PutKernel(compiled, KeptArguments(put_messages.ARRAYS))


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
