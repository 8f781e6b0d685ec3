"""Write records as MessagePack (twin of `compiled.packed`; numbers as short as they can be)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mqlake.dispatch.reference.messages import decode_text

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs


def packed(buffer: Bytes, at: Longs, sizes: Longs) -> Bytes:
    import numpy as np

    records = decode_text(buffer, at, sizes)
    return np.frombuffer(b"" if records is None else msgspec.msgpack.encode(records), np.uint8)
