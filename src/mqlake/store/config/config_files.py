"""The `config` directory of a store, as far as it helps to read the store."""

from __future__ import annotations

from typing import TypeVar

from mqlake.errors import FormatError, StoreError
from mqlake.formats.config import Config, Topics, load
from mqlake.storage.protocol import Directory
from mqlake.storage.read_file import read_file

DIRECTORY = "config"

_MOST_BYTES = 256 << 20
MOST_QUEUES = 1 << 16
"""A topic with more queues than that is not believed."""

C = TypeVar("C", bound=Config)


def read_config(directory: Directory, kind: type[C]) -> C | None:
    """Return a configuration file; None where there is none that can be read."""

    def read(name: str) -> bytes | None:
        path = f"{DIRECTORY}/{name}"
        if not directory.exists(path) or directory.size(path) > _MOST_BYTES:
            return None
        return read_file(directory, path)

    try:
        return load(read, kind)
    except (FormatError, StoreError):
        return None


def queue_count(directory: Directory, topic: str) -> int:
    """Return how many queues a topic has by its settings, 0 where they are not known."""
    topics = read_config(directory, Topics)
    settings = topics.topic_config_table.get(topic) if topics else None
    if settings is None:
        return 0
    return min(max(settings.read_queue_nums, settings.write_queue_nums), MOST_QUEUES)
