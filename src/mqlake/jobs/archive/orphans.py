"""Find objects that failed runs left in an archive."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.formats.archive_manifest import LOG, Manifest
from mqlake.formats.file_name import parse_segment_name
from mqlake.storage.durable import TEMPORARY
from mqlake.storage.protocol import Directory

CHANGING = "changing"
_DIGITS = 10


def changing_directory(generation: int, run: str) -> str:
    """Return the directory of a run's objects whose names are not their files' paths.

    Args:
        generation: of the manifest that is to name them.
        run: tells two runs apart that prepare the same generation at once.
    """
    return f"{CHANGING}/{generation:0{_DIGITS}d}-{run}"


def orphans(directory: Directory, manifest: Manifest) -> Iterator[str]:
    """Yield the objects that neither this manifest nor the one before names, and no later one will.

    A run that writes at the same time prepares the next generation, and segments after the end.
    Those of its objects are no orphans. A run that prepares an earlier generation fails.
    """
    named = {file.object for file in manifest.all_files} | set(manifest.superseded)
    for name in directory.names(CHANGING):
        generation, _, _ = name.partition("-")
        if generation.isdecimal() and int(generation) <= manifest.generation:
            yield from (
                each for each in _below(directory, f"{CHANGING}/{name}") if each not in named
            )
    for name in directory.names(LOG):
        start = parse_segment_name(name.removesuffix(TEMPORARY))
        if start is not None and start < manifest.end and f"{LOG}/{name}" not in named:
            yield f"{LOG}/{name}"


def _below(directory: Directory, path: str) -> Iterator[str]:
    for name in directory.names(path):
        below = f"{path}/{name}"
        if directory.is_directory(below):
            yield from _below(directory, below)
        else:
            yield below
