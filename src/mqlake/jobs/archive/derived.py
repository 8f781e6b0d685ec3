"""The files beside the commit log that belong to an archive, and how much of each.

A consume queue is cut at the first entry that names a message the archive's log does not have yet.
Index files are copied as they are: readers ignore entries past the log's end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mqlake.errors import StoreError, raise_passing
from mqlake.formats import index_file
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.damage import Damage
from mqlake.formats.file_name import is_index_name
from mqlake.storage.protocol import Directory
from mqlake.store.config import config_files
from mqlake.store.index import index_files
from mqlake.store.index.index_files import open_index_file
from mqlake.store.queues import queue_files
from mqlake.store.queues.queue_files import QueueFiles, queue_ids, topic_names
from mqlake.store.snapshot import CHECKPOINT_NAME

_OTHER_QUEUES = ("consumequeue_ext", "batchconsumequeue")
_DEPTH = 3


class DerivedPart(NamedTuple):
    """A file, how many of its bytes belong to the archive, and whether they can still change."""

    path: str
    length: int
    is_final: bool


def derived_files(directory: Directory, log_end: int) -> Iterator[DerivedPart]:
    """Yield the derived files and settings of a store.

    Args:
        log_end: physical offset where the archive's log ends.
    """
    yield from _queues(directory, log_end)
    yield from _indexes(directory)
    for name in _OTHER_QUEUES:
        yield from _tree(directory, name, _DEPTH)
    for name in directory.names(config_files.DIRECTORY):
        if name.endswith(".json"):
            yield from _whole(directory, f"{config_files.DIRECTORY}/{name}")
    yield from _whole(directory, CHECKPOINT_NAME)


def _queues(directory: Directory, log_end: int) -> Iterator[DerivedPart]:
    for topic in topic_names(directory):
        for queue_id in queue_ids(directory, topic):
            files = QueueFiles(directory, topic, queue_id)
            end = files.first_at_or_after(log_end)
            for file in files.files:
                path = f"{queue_files.DIRECTORY}/{topic}/{queue_id}/{file.name}"
                entries = min(end, file.end) - file.first
                if entries > 0:
                    yield DerivedPart(path, entries * ENTRY_SIZE, is_final=end >= file.end)


def _indexes(directory: Directory) -> Iterator[DerivedPart]:
    for name in filter(is_index_name, directory.names(index_files.DIRECTORY)):
        found = open_index_file(directory, name)
        if found is None or isinstance(found, Damage):
            continue
        count, sizes = found.header.index_count, found.sizes
        used = index_file.entry_at(sizes.slots, min(count, sizes.max_entries))
        is_full = count >= sizes.max_entries
        yield DerivedPart(found.path, len(found.view) if is_full else used, is_final=is_full)


def _tree(directory: Directory, path: str, depth: int) -> Iterator[DerivedPart]:
    for name in directory.names(path):
        below = f"{path}/{name}"
        if directory.is_directory(below):
            if depth:
                yield from _tree(directory, below, depth - 1)
        else:
            yield from _whole(directory, below)


def _whole(directory: Directory, path: str) -> Iterator[DerivedPart]:
    try:
        size = directory.size(path)
    except StoreError as error:
        raise_passing(error)
        return  # The file was removed since it was listed.
    yield DerivedPart(path, size, is_final=False)
