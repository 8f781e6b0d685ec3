"""What was done to a disk, step by step.

Files and directories are nodes with numbers: names come and go, a node stays what it is. The root
is node 0.
"""

from __future__ import annotations

from typing import NamedTuple

ROOT = 0


class MakeFile(NamedTuple):
    """A name for a new, empty file."""

    folder: int
    name: str
    node: int


class MakeFolder(NamedTuple):
    """A name for a new, empty directory."""

    folder: int
    name: str
    node: int


class Rename(NamedTuple):
    """A name that goes, and one that is given to its node."""

    folder: int
    name: str
    new_folder: int
    new_name: str


class Remove(NamedTuple):
    """A name that goes."""

    folder: int
    name: str


class Resize(NamedTuple):
    """Bytes that a file has from now on; zeros where it grew."""

    node: int
    size: int


class Write(NamedTuple):
    """Bytes that a file has at a position from now on; behind its end, it grows.

    Through a mapping the disk may see them half changed: the system writes pages when it likes.
    """

    node: int
    offset: int
    data: bytes
    is_mapped: bool


class Sync(NamedTuple):
    """All bytes of a file are on the disk. After a failure they may be, and never surely will."""

    node: int
    failed: bool = False


class SyncNames(NamedTuple):
    """All names in a directory are on the disk."""

    folder: int
    failed: bool = False


class Note(NamedTuple):
    """Something that the store said, between two steps."""

    what: object


Step = MakeFile | MakeFolder | Rename | Remove | Resize | Write | Sync | SyncNames | Note
