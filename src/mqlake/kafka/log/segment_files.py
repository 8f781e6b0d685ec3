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
        segments: base offset of each segment, ascending, and which of its files are `.swap` ones.
        snapshots: offsets of the producer snapshots, ascending.
        removable: files to remove before `swapped` are renamed, in this order. If the removal is
            interrupted, the rest has the same result.
        swapped: files to rename to live ones, in this order, which is as safe.
    """

    segments: list[tuple[int, frozenset[Kind]]]
    snapshots: list[int]
    removable: list[str]
    swapped: list[str]


def sort_files(names: Iterable[str], end_of_swap: Callable[[int], int]) -> SegmentFiles:
    """Sort the files of a partition's directory.

    A `.swap` segment without a whole batch replaces no segment that exists. Kafka would replace
    all records of that segment with nothing.

    Args:
        end_of_swap: returns the offset after the last batch of a `.swap` segment, by its base
            offset; the base offset if it has no whole batch.
    """
    files = [name for name in map(parse_file_name, names) if name is not None]
    by_state = {state: [file for file in files if file.state is state] for state in State}
    live, swaps = by_state[State.LIVE], by_state[State.SWAP]
    cleaned_from = min((file.offset for file in by_state[State.CLEANED]), default=None)
    if cleaned_from is not None:
        swaps = [file for file in swaps if file.offset < cleaned_from]
    ends = {base: end_of_swap(base) for base in sorted(_logs(swaps))}
    worthless = {base for base, end in ends.items() if end <= base} & _logs(live)
    swaps = [file for file in swaps if file.offset not in worthless]
    bases = _logs(swaps)
    first, end = (min(bases), max(ends[base] for base in bases)) if bases else (0, 0)
    live = [file for file in live if not first <= file.offset < end and file.offset not in bases]
    logs = _logs([*live, *swaps])
    wanted = {file for file in (*live, *swaps) if file.kind not in _INDEXES or file.offset in logs}
    swaps = sorted(wanted.intersection(swaps), key=lambda file: (file.kind is not Kind.LOG, file))
    return SegmentFiles(
        [(base, _swapped(base, bases, swaps)) for base in sorted(logs)],
        sorted({file.offset for file in wanted if file.kind is Kind.SNAPSHOT}),
        [_name(file) for file in sorted(files, key=_removal) if file not in wanted],
        [_name(file) for file in swaps],
    )


def _logs(files: Iterable[FileName]) -> set[int]:
    return {file.offset for file in files if file.kind is Kind.LOG}


def _swapped(base: int, bases: set[int], swaps: list[FileName]) -> frozenset[Kind]:
    if base in bases:
        return frozenset(Kind)  # An index that the replaced segment left is not one of this log.
    return frozenset(file.kind for file in swaps if file.offset == base)


def _removal(file: FileName) -> tuple[bool, bool]:
    # A `.cleaned` file says that later `.swap` files are worthless, and a `.swap` log says so of
    # its indexes: what says so is removed last.
    return file.state is not State.SWAP, file.kind is Kind.LOG


def _name(file: FileName) -> str:
    return file_name(file.offset, file.kind, file.state)
