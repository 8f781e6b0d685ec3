"""Which files of a partition make its log, after whatever was going on when Kafka stopped.

The cleaner and the split of a segment write `.cleaned` files, rename them to `.swap` when all are
complete, and only then put them in the place of older files. Upstream: `LogLoader.load`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from mqlake.formats.kafka.file_name import FileName, Kind, State, file_name, parse_file_name

_INDEXES = (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX)


class SegmentFiles(NamedTuple):
    """What a directory's files come to.

    Attributes:
        segments: base offset and state of each `.log` file that counts, ascending.
        snapshots: offsets of the producer snapshots, ascending.
        removable: files that Kafka would remove when it starts.
        swapped: files that it would rename to live ones.
    """

    segments: list[tuple[int, State]]
    snapshots: list[int]
    removable: list[str]
    swapped: list[str]


def sort_files(names: Iterable[str], end_of_swap: Callable[[int], int]) -> SegmentFiles:
    """Sort the files of a partition's directory.

    `end_of_swap` gives the offset after the last batch of a `.swap` segment, by its base offset.
    """
    files = [name for name in map(parse_file_name, names) if name is not None]
    by_state = {state: [file for file in files if file.state is state] for state in State}
    cleaned_from = min((file.offset for file in by_state[State.CLEANED]), default=None)
    swaps = [
        file for file in by_state[State.SWAP] if cleaned_from is None or file.offset < cleaned_from
    ]
    bases = [file.offset for file in swaps if file.kind is Kind.LOG]
    first, end = (min(bases), max(map(end_of_swap, bases))) if bases else (0, 0)
    live = [file for file in by_state[State.LIVE] if not first <= file.offset < end]
    logs = {file.offset for file in (*live, *swaps) if file.kind is Kind.LOG}
    kept = [file for file in live if file.kind not in _INDEXES or file.offset in logs]
    wanted = {*kept, *swaps}
    return SegmentFiles(
        sorted((file.offset, file.state) for file in wanted if file.kind is Kind.LOG),
        sorted(file.offset for file in wanted if file.kind is Kind.SNAPSHOT),
        [_name(file) for file in files if file not in wanted],
        [_name(file) for file in swaps],
    )


def _name(file: FileName) -> str:
    return file_name(file.offset, file.kind, file.state)
