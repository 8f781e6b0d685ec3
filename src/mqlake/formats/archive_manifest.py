"""The manifest of an archive (docs/formats/archive_manifest.md): its files, and their names.

`manifest.json` is written after the objects that it names. So an archive always contains what its
manifest lists, whatever other objects are beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from mqlake.errors import FormatError
from mqlake.formats.file_name import parse_segment_name

NAME = "manifest.json"
KIND = "mqlake archive"
VERSION = 1

LOG = "commitlog"
_LARGEST = 1 << 40
"""Maximum bytes of a file. Java's segments have less than 2 GiB."""

_LONGEST_PATH = 1024
_DEEPEST = 8
"""Parts of a path, at most. Those of a store have four; some objects are in `changing/N-…/`."""

HEAD_BYTES = 4096
"""Bytes at a segment's start that identify its log."""


class ArchivedFile(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A file of the store, and the object that contains its bytes.

    Attributes:
        path: in the store.
        object: in the archive.
        size: bytes of the file.
        stored: bytes of the object; the rest of the file is zeros.
        sha256: checksum of the object, in hex.
        is_final: whether the file never changes again, unless its topic is deleted and created
            again.
        entries_crc32: of a final queue file, the checksum of the whole entries in its first
            `HEAD_BYTES` bytes; unset in older manifests, and for other files.
    """

    path: str
    object: str
    size: int
    stored: int
    sha256: str
    is_final: bool = True
    entries_crc32: int | msgspec.UnsetType = msgspec.UNSET


class ArchivedSegment(ArchivedFile, frozen=True, rename="camel", kw_only=True):
    """A segment of the commit log.

    Attributes:
        start, end: physical offsets of its first byte, and after its last.
        records: number of valid records.
        damaged: bytes that are not in a valid record.
        min_store_timestamp, max_store_timestamp: of its records (ms); 0 without records.
        head_crc32: checksum of its first `HEAD_BYTES` bytes.
    """

    start: int
    end: int
    records: int
    damaged: int
    min_store_timestamp: int
    max_store_timestamp: int
    head_crc32: int


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """The content of an archive.

    Attributes:
        generation: how often the manifest was written.
        written: when, in ms since 1970.
        segments: of the commit log, ascending. Those missing between two were deleted before they
            were archived.
        files: derived files and settings, by path.
        superseded: objects of the previous manifest, which its readers may still read.
    """

    kind: str = KIND
    version: int = VERSION
    generation: int = 0
    written: int = 0
    segments: tuple[ArchivedSegment, ...] = ()
    files: tuple[ArchivedFile, ...] = ()
    superseded: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        """Physical offset after the last segment; 0 without one."""
        return self.segments[-1].end if self.segments else 0

    @property
    def all_files(self) -> tuple[ArchivedFile, ...]:
        """The segments and the other files."""
        return (*self.segments, *self.files)


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON, indented for people."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(data: bytes) -> Manifest:
    """Return the manifest that a JSON text contains.

    Raises:
        FormatError: the text is not a manifest, or contradicts itself.
    """
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(f"not the manifest of an archive: {error}") from None
    if manifest.kind != KIND:
        raise FormatError("not the manifest of an archive")
    if manifest.version != VERSION:
        raise FormatError(
            f"this archive has format {manifest.version}, but this version of mqlake reads "
            f"{VERSION}: use a newer one"
        )
    if fault := next(_faults(manifest), None):
        raise FormatError(f"the manifest contradicts itself: {fault}")
    return manifest


def _is_path(path: str) -> bool:
    if len(path) > _LONGEST_PATH or path.count("/") >= _DEEPEST:
        return False
    return all(name not in ("", ".", "..") and "\0" not in name for name in path.split("/"))


def _faults(manifest: Manifest) -> Iterator[str]:
    paths = [file.path for file in manifest.all_files]
    if len(set(paths)) < len(paths):
        yield "a path occurs twice"
    for file in manifest.all_files:
        if not (_is_path(file.path) and _is_path(file.object)):
            yield f"{file.path[:300]!r}, object {file.object[:300]!r}: not a path in an archive"
        if not 0 <= file.stored <= file.size <= _LARGEST:
            yield f"{file.path}: the object has {file.stored} of {file.size} bytes"
    for segment in manifest.segments:
        directory, _, name = segment.path.rpartition("/")
        is_named = directory == LOG and parse_segment_name(name) == segment.start
        if not is_named or segment.start + segment.size != segment.end:
            yield f"{segment.path} is not the segment from {segment.start} to {segment.end}"
    for segment, following in pairwise(manifest.segments):
        if following.start < segment.end:
            yield f"{following.path} begins before the segment before it ends"
