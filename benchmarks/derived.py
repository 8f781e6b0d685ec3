"""Compare derived files: what RocketMQ made of a log, and what mqlake did."""

from __future__ import annotations

import filecmp
from pathlib import Path

QUEUES, INDEX = "consumequeue", "index"


class DifferenceError(Exception):
    """Two sides made different files of the same log."""


def compare(one: Path, other: Path) -> str:
    """Compare consume queues by name and index files by age; return what was compared.

    Index files are named after the clock, so that their names differ.

    Raises:
        DifferenceError: a file is missing or differs.
    """
    queues = [_files(directory / QUEUES) for directory in (one, other)]
    indexes = [_files(directory / INDEX) for directory in (one, other)]
    names = [[path.relative_to(one / QUEUES) for path in queues[0]]]
    names += [[path.relative_to(other / QUEUES) for path in queues[1]]]
    if names[0] != names[1] or len(indexes[0]) != len(indexes[1]):
        raise DifferenceError(f"{one.name} and {other.name} do not hold the same files")
    pairs = [*zip(*queues, strict=True), *zip(*indexes, strict=True)]
    for left, right in pairs:
        if not filecmp.cmp(left, right, shallow=False):
            raise DifferenceError(f"{left} and {right} differ")
    size = sum(left.stat().st_size for left, _ in pairs)
    return (
        f"{len(queues[0])} consume-queue files and {len(indexes[0])} index files, "
        f"{size:,} bytes, are equal byte for byte"
    )


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())
