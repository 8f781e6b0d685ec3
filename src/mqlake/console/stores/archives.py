"""Archives of a store: what they have of its log."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from mqlake.errors import MqlakeError, StoreError
from mqlake.formats.archive_manifest import NAME, Manifest
from mqlake.storage.shown_url import shown_url
from mqlake.store.archive.archived import read_manifest
from mqlake.store.archive.opening import open_directory


class ArchiveFacts(msgspec.Struct, frozen=True, rename="camel"):
    """An archive.

    Attributes:
        written: when its manifest was written (ms); `generation` counts how often.
        start, end: physical offsets of the archived part of the log.
        missing: bytes between the two that are not archived.
        length, stored: bytes of the segments, and of the objects that contain them.
        damaged: bytes that are not in a valid record.
        problem: why it cannot be read; None if it can.
    """

    archive: str
    generation: int = 0
    written: int = 0
    segments: int = 0
    start: int = 0
    end: int = 0
    missing: int = 0
    length: int = msgspec.field(name="bytes", default=0)
    stored: int = 0
    records: int = 0
    damaged: int = 0
    first_stored: int = 0
    last_stored: int = 0
    problem: str | None = None


def archive_facts(place: str) -> ArchiveFacts:
    """Return what the manifest of an archive shows.

    Args:
        place: a directory or a URL.
    """
    shown = shown_url(place)
    try:
        manifest = read_manifest(open_directory(place))
        if manifest is None:
            raise StoreError(f"{shown}: there is no {NAME} in it, so it is not an archive")
    except (MqlakeError, OSError) as error:
        return ArchiveFacts(shown, problem=str(error))
    return _facts(shown, manifest)


def _facts(shown: str, manifest: Manifest) -> ArchiveFacts:
    segments = manifest.segments
    times = [one for one in segments if one.records]
    return ArchiveFacts(
        archive=shown,
        generation=manifest.generation,
        written=manifest.written,
        segments=len(segments),
        start=segments[0].start if segments else 0,
        end=segments[-1].end if segments else 0,
        missing=sum(after.start - before.end for before, after in pairwise(segments)),
        length=sum(one.size for one in segments),
        stored=sum(one.stored for one in segments),
        records=sum(one.records for one in segments),
        damaged=sum(one.damaged for one in segments),
        first_stored=min((one.min_store_timestamp for one in times), default=0),
        last_stored=max((one.max_store_timestamp for one in times), default=0),
    )
