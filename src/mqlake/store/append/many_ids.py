"""The offset message ids of a batch of very many messages: an answer has all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from mqlake.formats.message_id import encode_message_id, encode_message_ids

_FEW: Final = 1000
"""Ids that are formatted faster than they are laid out."""
_OFFSET_DIGITS: Final = 16


def many_message_ids(store_host: bytes, physical_offsets: Sequence[int]) -> str:
    """Return the offset ids of several records of a broker, joined by commas.

    Raises:
        FormatError: as `encode_message_id`.
    """
    if len(physical_offsets) < _FEW:
        return encode_message_ids(store_host, physical_offsets)
    sample = np.frombuffer(f"{encode_message_id(store_host, 0)},".encode(), np.uint8)
    table = np.empty((len(physical_offsets), len(sample)), np.uint8)
    table[:] = sample
    digits = np.array(physical_offsets, ">i8").tobytes().hex().upper().encode()
    table[:, -_OFFSET_DIGITS - 1 : -1] = np.frombuffer(digits, f"V{_OFFSET_DIGITS}").view(
        (np.uint8, _OFFSET_DIGITS)
    )
    return table.tobytes()[:-1].decode("ascii")
