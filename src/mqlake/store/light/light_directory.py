"""Where the files of light queues are in a store."""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.errors import FormatError
from mqlake.formats.file_name import parse_segment_name, segment_name
from mqlake.formats.light import light_queue_file
from mqlake.storage.protocol import Directory

DIRECTORY = "lightqueue"


def light_path(topic: str, base: int) -> str:
    """Return the path of the file of a topic's light queues in a segment of the log."""
    return f"{DIRECTORY}/{topic}/{segment_name(base)}"


def light_files(directory: Directory) -> Iterator[tuple[str, int]]:
    """Yield the topic and the base of each file of light queues."""
    for topic in directory.names(DIRECTORY):
        path = f"{DIRECTORY}/{topic}"
        for name in directory.names(path) if directory.is_directory(path) else ():
            if (base := parse_segment_name(name)) is not None:
                yield topic, base


def found_seed(directory: Directory) -> int | None:
    """Return the seed of the first file whose header can be read; None without one.

    Raises:
        DiskError: a file cannot be opened.
    """
    for topic, base in light_files(directory):
        file = directory.open(light_path(topic, base))
        try:
            return light_queue_file.decode_header(file.view()).seed
        except FormatError:
            continue
        finally:
            file.close()
    return None
