"""The entries of `.txnindex` files: aborted transactions (docs/formats/kafka/transaction_index.md).

Upstream: `TransactionIndex`, `AbortedTxn`.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError

ENTRY = Struct(
    ">"
    "h"  # version: 0
    "q"  # producer id
    "q"  # first offset
    "q"  # last offset: the marker's
    "q"  # last stable offset when the marker was written
)
ENTRY_SIZE = ENTRY.size
VERSION = 0


class AbortedTransaction(NamedTuple):
    """A transaction that was rolled back; offsets are those of its first record and its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def decode(data: bytes) -> list[AbortedTransaction]:
    """Return the entries of a file; a last one that is cut off is left out, as in Kafka.

    Raises:
        FormatError: an entry of a later version.
    """
    entries: list[AbortedTransaction] = []
    for at in range(0, len(data) - ENTRY_SIZE + 1, ENTRY_SIZE):
        version, *fields = ENTRY.unpack_from(data, at)
        if version > VERSION:
            raise FormatError(f"byte {at}: an aborted transaction of version {version}")
        entries.append(AbortedTransaction(*fields))
    return entries


def encode_entry(entry: AbortedTransaction) -> bytes:
    """Return the 34 bytes of an entry."""
    return ENTRY.pack(VERSION, *entry)
