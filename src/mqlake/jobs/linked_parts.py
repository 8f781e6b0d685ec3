"""Build parts of a store that are symbolic links on the disks to which they lead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqlake.jobs.swap import OPTIONAL_PARTS, PARTS, SCRATCH, Exchange


def linked_parts(root: Path) -> list[str]:
    """Return the parts of a store that are symbolic links to directories."""
    parts = (*OPTIONAL_PARTS, *PARTS)
    return [part for part in parts if (root / part).is_symlink() and (root / part).is_dir()]


def link_scratch(root: Path, parts: Sequence[str]) -> None:
    """Have parts that are links to other disks built there."""
    for part in parts:
        inside = (root / part).resolve() / SCRATCH
        (root / Exchange.new / part).symlink_to(inside / "new")
        (root / Exchange.work / part).symlink_to(inside / "work")
