"""Find messages through the index files (access path "index").

An index entry hashes topic and key together. The part of the log that no index file covers is read
as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from mqlake.formats.index_file import index_key
from mqlake.formats.java_string import index_key_hash
from mqlake.query.reading.conditions import Selection, key_texts, wants_topic
from mqlake.query.store.access.boundaries import Boundaries
from mqlake.query.store.access.stretches import Stretch, join
from mqlake.query.store.place import OpenStore
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.log.scan import head_at
from mqlake.store.queues.queue_files import topic_names
from mqlake.store.queues.queue_kind import batch_topics

_MOST_LOOKUPS = 20_000
_MOST_FOUND = 100_000


def find(
    store: OpenStore, boundaries: Boundaries, selection: Selection, stretch: Stretch
) -> list[Stretch] | None:
    """Return the parts of a stretch that may have the selected keys; None if scanning is as
    good.
    """
    keys = key_texts(selection)
    if keys is None or not store.directory.names("index"):
        return None
    index = store.snapshot.index
    topics = [topic for topic in topics_of(store) if wants_topic(selection, topic)]
    if len(topics) * len(keys) * len(index.files) > _MOST_LOOKUPS:
        return None
    texts = [index_key(topic, key) for topic in topics for key in keys]
    found = _records(store, index, texts, stretch)
    if found is None:
        return None
    gaps = [
        (max(boundaries.at_or_before(first), stretch[0]), last)
        for first, last in index.gaps(store.log, *stretch)
    ]
    return join([*found, *gaps])


def lacks_keys(store: OpenStore, selection: Selection) -> bool:
    """Return whether keys are selected that may be those of messages in inner batches."""
    return key_texts(selection) is not None and any(
        wants_topic(selection, topic) for topic in batch_topics(store.directory)
    )


def topics_of(store: OpenStore) -> set[str]:
    """Return all topics; a topic whose queue files are lost is still in the settings."""
    # Imported late: most queries name no key.
    from mqlake.formats.config import Topics
    from mqlake.store.config.config_files import read_config

    settings = read_config(store.directory, Topics)
    known = set(topic_names(store.directory))
    known.update(settings.topic_config_table if settings else ())
    known.update(topic for topic, _ in store.snapshot.undispatched.bounds)
    return known


def _records(
    store: OpenStore, index: IndexFiles, keys: Iterable[str], stretch: Stretch
) -> list[Stretch] | None:
    """Return the records that the index names for some texts, None if there are too many."""
    found: dict[int, Stretch] = {}
    for text in keys:
        key_hash = index_key_hash(text)
        for file in index.files:
            for entry in file.slot(key_hash):
                if entry.key_hash != key_hash:
                    continue
                at = entry.physical_offset
                is_new = stretch[0] <= at < stretch[1] and at not in found
                head = head_at(store.log, at) if is_new else None
                if head is not None:
                    found[at] = at, at + head.size
                if len(found) > _MOST_FOUND:
                    return None
    return list(found.values())
