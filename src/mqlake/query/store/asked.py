"""Find the topics and queues that a batch query names but that do not exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mqlake.query.reading.losses import absent, no_match, no_topic
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.place import OpenStore
from mqlake.store.queues.queue_files import topic_names

if TYPE_CHECKING:
    from mqlake.formats.config import Topics


def check_asked(store: OpenStore, options: StoreReadOptions) -> None:
    """Check that a store has the topics and queues that options name.

    Raises:
        StoreError: something does not exist, and losses are not tolerated.
    """
    for what in missing(store, options).values():
        absent(options, f"{options.path}: {what}")


def missing(store: OpenStore, options: StoreReadOptions) -> dict[str, str]:
    """Return what options name but a store lacks: topics, queues, and patterns that match no topic.

    A topic exists if it has settings, queue files, or messages.

    Returns:
        The text for users, by a name that is the same for all stores. The text may say what this
        store has instead.
    """
    found: dict[str, str] = {}
    named = [*(options.topics or ()), *(topic for topic, _ in options.queues or ())]
    pattern = options.topic_pattern
    if not named and pattern is None:
        return found
    # Imported late: many queries name no topic.
    from mqlake.formats.config import Topics
    from mqlake.store.config.config_files import read_config

    settings = read_config(store.directory, Topics)
    queues = _queue_counts(settings)
    topics = {*topic_names(store.directory), *queues}
    if pattern is not None or not topics.issuperset(named):
        topics |= {topic for topic, _ in store.snapshot.undispatched.bounds}
    for topic in dict.fromkeys(named):
        if topic not in topics:
            found[f"topic {topic}"] = no_topic(topic, topics)
    for topic, queue_id in options.queues or ():
        is_there = queue_id < queues.get(topic, 0) or queue_id in store.snapshot.queue_ids(topic)
        if topic in topics and not is_there:
            last = max([queues.get(topic, 0) - 1, *store.snapshot.queue_ids(topic)])
            text = f"topic {topic!r} has no queue {queue_id}; its last queue is {last}"
            found[f"queue {topic}-{queue_id}"] = text
    if pattern is not None and not any(re.fullmatch(pattern, topic) for topic in topics):
        found[f"pattern {pattern}"] = no_match(pattern, topics)
    return found


def _queue_counts(settings: Topics | None) -> dict[str, int]:
    """Return the number of queues of each topic according to its settings."""
    table = settings.topic_config_table if settings else {}
    return {
        name: max(topic.read_queue_nums, topic.write_queue_nums) for name, topic in table.items()
    }
