"""Show which index files were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mqlake.cli.text import count, rate, size
from mqlake.cli.views import damage
from mqlake.cli.views.tables import named_values

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.kafka.log.partition_path import PartitionPath
    from mqlake.kafka.repair.rebuild_index import RebuiltSegment


def view(
    done: Sequence[tuple[PartitionPath, list[RebuiltSegment]]], seconds: float
) -> Iterator[RenderableType]:
    """Yield what was read and written, and where logs are damaged."""
    segments = [segment for _, made in done for segment in made]
    length = sum(segment.indexed for segment in segments)
    partitions = count(len(done), "partition")
    yield named_values(
        [
            ("read", f"{size(length)} in {count(len(segments), 'segment')} of {partitions}"),
            ("offset index", _entries(segment.index_entries for segment in segments)),
            ("time index", _entries(segment.time_index_entries for segment in segments)),
            ("aborted", _transactions(segment.aborted_transactions for segment in segments)),
            ("took", f"{seconds:.2f} s, {rate(length, seconds)}"),
        ]
    )
    found = [one for segment in segments for one in segment.damage]
    yield from damage.view(found, "Damaged, and not indexed from there on")


def _entries(numbers: Iterator[int]) -> str:
    return count(sum(numbers), "entry", "entries")


def _transactions(numbers: Iterator[int]) -> str:
    return count(sum(numbers), "transaction")
