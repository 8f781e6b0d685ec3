"""The parts of a store's `config` directory that help to read the store."""

from __future__ import annotations

from typing import TypeVar

from mqlake.errors import FormatError, StoreError, raise_passing
from mqlake.formats.config import Config, Topics, load
from mqlake.formats.config.topics import Topic
from mqlake.storage.protocol import Directory
from mqlake.storage.read_file import read_file

DIRECTORY = "config"

_MOST_BYTES = 256 << 20
MOST_QUEUES = 1 << 16
"""Topics with more queues are not plausible."""

C = TypeVar("C", bound=Config)


def read_config(directory: Directory, kind: type[C]) -> C | None:
    """Return a configuration file; None if it does not exist or cannot be read.

    Raises:
        DiskError: the process has no descriptor or memory for it now.
    """

    def read(name: str) -> bytes | None:
        path = f"{DIRECTORY}/{name}"
        if not directory.exists(path) or directory.size(path) > _MOST_BYTES:
            return None
        return read_file(directory, path)

    try:
        return load(read, kind)
    except (FormatError, StoreError) as error:
        raise_passing(error)
        return None


def stated_queues(settings: Topic) -> int:
    """Return the number of a topic's queues according to its settings."""
    return min(max(settings.read_queue_nums, settings.write_queue_nums), MOST_QUEUES)


def queue_count(directory: Directory, topic: str) -> int:
    """Return the number of a topic's queues according to its settings, 0 if they are unknown."""
    topics = read_config(directory, Topics)
    settings = topics.topic_config_table.get(topic) if topics else None
    return 0 if settings is None else stated_queues(settings)
