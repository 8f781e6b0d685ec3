"""Write messages as records: a plain one, one that a client sent, or a run of plain ones, each by
one compiled function.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mqlake.dispatch.kernel import is_compiled
from mqlake.formats.host import V4_SIZE

Put = Callable[..., int]
"""put(buffer, at, end, base, scratch, route, queue offset, now, body, keys, tags, flag, sys flag,
born timestamp, reconsume times): write a record, as `mqlake.dispatch.compiled.put` says.

The caller passes exactly: writable arrays of bytes, numbers, `bytes` for route and body, and `str`
for keys and tags. The function checks the values, and not these types.
"""

PutRun = Callable[..., tuple[int, int, int]]
"""put_run(target, end, base, packed messages, position of the first, most messages, route, queue
offset, now, rows): write records, as `mqlake.dispatch.compiled.put_run` says.

The caller passes exactly: writable arrays of bytes and numbers, and `bytes` for packed messages and
route.
"""

PutSent = Callable[..., int]
"""put_sent(buffer, at, end, base, scratch, route, queue offset, now, data, properties, numbers):
write a record, as `mqlake.dispatch.compiled.put_sent` says.

The caller passes exactly: writable arrays of bytes for buffer, scratch and properties, a writable
array of i8 for the numbers of the message, numbers, and `bytes` for route and data.
"""

pack = msgspec.msgpack.Encoder().encode
"""Return messages for `PutRun`: structs that msgspec packs as lists of `drafts.FIELDS`."""

REFUSED = -1
"""Returned if nothing was written."""


def load_put() -> Put | None:
    """Return the compiled function; None without compiled kernels."""
    if not is_compiled():
        return None
    from mqlake.dispatch.compiled import put
    from mqlake.kernels.entry_point import BYTES, DATA, INT, TEXT, entry_point

    numbers = [INT] * 4
    return entry_point(
        put.put, BYTES, INT, INT, INT, BYTES, DATA, INT, INT, DATA, TEXT, TEXT, *numbers
    )


def load_run() -> PutRun | None:
    """Return the compiled function for runs; None without compiled kernels."""
    if not is_compiled():
        return None
    from mqlake.dispatch.compiled import put_run
    from mqlake.kernels.entry_point import BYTES, DATA, INT, LONG_ROWS, entry_point

    return entry_point(put_run.put_run, BYTES, INT, INT, DATA, INT, INT, DATA, INT, INT, LONG_ROWS)


def load_sent() -> PutSent | None:
    """Return the compiled function for messages of clients; None without compiled kernels."""
    if not is_compiled():
        return None
    from mqlake.dispatch.compiled import put_sent
    from mqlake.kernels.entry_point import BYTES, DATA, INT, LONGS, entry_point

    return entry_point(
        put_sent.put_sent, BYTES, INT, INT, INT, BYTES, DATA, INT, INT, DATA, BYTES, LONGS
    )


def make_route(
    *,
    queue_id: int,
    magic: int,
    part: bytes,
    longest_body: int,
    crc_size: int,
    host: bytes,
    born_host: bytes | None = None,
) -> bytes:
    """Return what the plain records of a queue have in common.

    Args:
        part: the topic as a record has it: its length, and its bytes.
        longest_body: maximum bytes of a body.
        crc_size: bytes of the record CRC in properties, 0 for none.
        host: of the store: 8 bytes.
        born_host: of the sender: 8 bytes; None for the store itself.
    """
    born_host = host if born_host is None else born_host
    assert len(host) == len(born_host) == V4_SIZE
    numbers = (queue_id, magic, longest_body, crc_size, len(part))
    return b"".join([*(number.to_bytes(8, "big") for number in numbers), born_host, host, part])
