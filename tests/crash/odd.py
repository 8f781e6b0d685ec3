"""Messages whose records look damaged, and are not."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.formats import record
from tests.odd_messages import DAMAGED_LOOKING

PROPERTIES = DAMAGED_LOOKING


def bodies(at: int) -> Iterator[bytes]:
    """Yield bodies, some of which imitate records.

    Args:
        at: the physical offset that the body will have.
    """
    yield b""
    yield bytes(40)
    yield bytes(700)
    fields = {"topic": "orders", "body": b"imitated", "physical_offset": at}
    yield record.encode(**fields)
    yield record.encode(**fields, properties=bytes(30), append_crc=True)
    yield record.encode_blank_head(100) + b"x" * 30
    yield b"body"
