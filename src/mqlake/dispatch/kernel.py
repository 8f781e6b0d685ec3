"""Choose the kernels: compiled, or their readable twin.

MQLAKE_KERNEL=compiled|reference overrides the choice; MQLAKE_BOUNDSCHECK=1 makes the compiled ones
check each access.
"""

from __future__ import annotations

from typing import Protocol

from mqlake.dispatch.answers import Followed, MessageColumns, SearchEnd, Walk
from mqlake.dispatch.batch import Batch, Bytes, Ints, Longs, Window
from mqlake.dispatch.columns import KeyColumns, RecordColumns
from mqlake.dispatch.drafts import Drafts, Routes, Rows
from mqlake.dispatch.queue_read import LogPart, ReadLimits, Wanted
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.value_columns import Times, Values
from mqlake.kernels.choice import checked, chosen


class Kernel(Protocol):
    """What the compiled kernels and the reference both do. Nothing here raises on bad bytes."""

    def walk(
        self, window: Window, at: int, stop: int, records: RecordColumns, *, check_crc: bool
    ) -> Walk:
        """Fill rows for the records from `at` on that start before `stop`."""
        ...

    def search(self, window: Window, at: int, stop: int, allowance: int) -> SearchEnd:
        """Find the first position from `at` on, before `stop`, where a good record starts.

        Candidates with more body bytes than are left of `allowance` are passed over, so that
        hostile bytes cannot make a search quadratic.
        """
        ...

    def adjacent(self, buffer: Bytes, rows: Longs) -> tuple[int, int]:
        """Fill a column for each record from the first byte on: see `mqlake.dispatch.adjacent`.

        There is a column for each record that there could be.
        """
        ...

    def locate(self, buffer: Bytes, at: Longs, records: RecordColumns) -> None:
        """Fill rows for good records at positions: see `mqlake.dispatch.adjacent.located`."""
        ...

    def first_torn(self, buffer: Bytes, base: int, records: RecordColumns) -> int:
        """Return the first row whose record `formats.record.is_torn`, the number of rows for none.

        Args:
            base: physical offset of the buffer's first byte.
            records: what `walk` has found there, or some rows of it.
        """
        ...

    def describe(
        self,
        buffer: Bytes,
        records: RecordColumns,
        keys: KeyColumns,
        table: QueueTable,
        delay_levels: Longs,
        *,
        hash_keys: bool,
        index_tags: bool,
    ) -> int:
        """Fill the columns that follow from properties; return how many keys there are.

        `keys` has a row for each byte of properties that could start one.
        """
        ...

    def group(self, records: RecordColumns, queues: int) -> tuple[Bytes, Longs, Longs]:
        """Return consume-queue entries by queue: see `dispatch.derived.queue_entries.group`."""
        ...

    def follow(
        self,
        entries: Bytes,
        first: int,
        part: LogPart,
        wanted: Wanted,
        limits: ReadLimits,
        rows: Longs,
    ) -> Followed:
        """Fill a row for each of a queue's entries that is wanted; the first has offset `first`.

        Until a limit is reached or a record lies in another segment. `rows`, i8[4, n], has room
        for all: see `mqlake.dispatch.queue_read`.
        """
        ...

    def copy_records(self, target: Bytes, buffer: Bytes, at: Longs, sizes: Longs) -> None:
        """Copy records consecutively to the start of `target`.

        All lie within `buffer` and fit into `target`.
        """
        ...

    def insert_entries(
        self,
        buffer: Bytes,
        slots: int,
        number: int,
        begin: int,
        hashes: Ints,
        offsets: Longs,
        timestamps: Longs,
    ) -> int:
        """Append index entries from `number` on; return how many were the first in their slot.

        `begin` is the time (milliseconds) that their seconds count from. They fit.
        """
        ...

    def lookup_entries(
        self, buffer: Bytes, slots: int, limit: int, hashes: Ints, begin: int, end: int, most: int
    ) -> tuple[Ints, Longs]:
        """Return (row of `hashes`, physical offset) of each match; newest first for each row.

        The buffer holds the slots, and all entries below number `limit`.
        """
        ...

    def relink(self, buffer: Bytes, slots: int, count: int) -> tuple[int, int, int, int, int]:
        """Return the fields of `mqlake.dispatch.derived.index_entries.Relinked`."""
        ...

    def values(self, batch: Batch, chosen: int, times: Times) -> Values:
        """Return the columns whose `value_columns.BITS` are in `chosen`."""
        ...

    def packed(self, buffer: Bytes, at: Longs, sizes: Longs) -> Bytes:
        """Return good records as a MessagePack array of `formats.record.Record`.

        Nothing where some have text that is not UTF-8.
        """
        ...

    def message_columns(
        self, buffer: Bytes, at: Longs, sizes: Longs, head: Bytes, spans_at: int
    ) -> MessageColumns:
        """Return all columns of records that are good, behind `head`.

        From byte `spans_at` of it on, for each of Arrow's buffers: its position behind the head
        and its length in bytes, 8 bytes each, in the machine's order.
        """
        ...

    def draft_batch(self, source: Bytes, lead: int, rows: Rows) -> int:
        """Fill a row for each message of a batch's body; return how many, -1 if malformed.

        There is a row for each message that there could be.
        """
        ...

    def write_records(
        self,
        target: Bytes,
        to: int,
        end: int,
        base: int,
        drafts: Drafts,
        first: int,
        routes: Routes,
        now: int,
        append_crc: int,
    ) -> tuple[int, int]:
        """Write rows as records: see `mqlake.dispatch.writing.encode.write_records`."""
        ...

    def properties_with_crc(self, texts: Bytes, rows: Rows) -> tuple[bool, int, int]:
        """Return whether a row may bring a record CRC, and bytes of properties with their own.

        (whether so, most of a row, all of them)
        """
        ...

    def state_crcs(self, buffer: Bytes, starts: Longs, sizes: Longs) -> None:
        """Write the CRC of records that have room for it: see `mqlake.dispatch.writing.encode`."""
        ...


def is_compiled() -> bool:
    """Return whether the compiled kernels are those that `load` returns."""
    return chosen() in (None, "compiled")


def load(name: str | None = None) -> Kernel:
    """Return the kernels called `name`, without a name those that MQLAKE_KERNEL chooses.

    Raises:
        MqlakeError: there are no such kernels.
    """
    if (checked(name) if name else chosen()) == "reference":
        from mqlake.dispatch import reference

        return reference
    from mqlake.dispatch.compiled import calls

    return calls
