"""Check that a batch query has what it names."""

from __future__ import annotations

import re

from mqlake.formats.config import Topics
from mqlake.spark.source.offsets import data_loss
from mqlake.spark.source.options import ReadOptions
from mqlake.spark.source.place import OpenStore
from mqlake.store.config.config_files import queue_count, read_config
from mqlake.store.queues.queue_files import topic_names


def check_asked(store: OpenStore, options: ReadOptions) -> None:
    """Check that topics and queues are there that options name, and that a pattern matches some.

    A topic is there that has settings, queue files, or messages.

    Raises:
        StoreError: they are not, and losses are not tolerated.
    """
    named = [*(options.topics or ()), *(topic for topic, _ in options.queues or ())]
    topics = _settled(store)
    if any(topic not in topics for topic in named) or options.topic_pattern is not None:
        topics |= {topic for topic, _ in store.snapshot.undispatched.bounds}
    for topic in dict.fromkeys(named):
        if topic not in topics:
            data_loss(options, f"{options.path}: there is no topic {topic!r} in it")
    for topic, queue_id in options.queues or ():
        if topic in topics and not _has_queue(store, topic, queue_id):
            data_loss(options, f"{options.path}: topic {topic!r} has no queue {queue_id}")
    pattern = options.topic_pattern
    if pattern is not None and not any(re.fullmatch(pattern, topic) for topic in topics):
        data_loss(options, f"{options.path}: no topic in it matches {pattern!r}")


def _settled(store: OpenStore) -> set[str]:
    """Return the topics that have settings or queue files."""
    settings = read_config(store.directory, Topics)
    return {*topic_names(store.directory), *(settings.topic_config_table if settings else ())}


def _has_queue(store: OpenStore, topic: str, queue_id: int) -> bool:
    if queue_id < queue_count(store.directory, topic):
        return True
    return queue_id in store.snapshot.queue_ids(topic)
