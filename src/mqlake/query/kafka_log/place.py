"""Open the directory of the option `path`, and find the partitions of a query."""

from __future__ import annotations

import re
from pathlib import Path

from mqlake.errors import StoreError
from mqlake.formats.kafka import checkpoint_file
from mqlake.formats.kafka.file_name import INTERNAL_TOPICS, META_PROPERTIES
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.query.kafka_log.options import KafkaLogReadOptions, TopicPartition
from mqlake.query.reading.directory import Location, open_directory
from mqlake.query.reading.losses import no_topic

_MARKS = (META_PROPERTIES, checkpoint_file.RECOVERY_POINTS)


def open_logs(location: Location) -> LogDirectory:
    """Return the log directory of a query.

    Raises:
        StoreError: the path is not a log directory.
    """
    logs = LogDirectory(open_directory(location.path, location.settings))
    if not logs.partitions() and not any(logs.directory.exists(name) for name in _MARKS):
        raise StoreError(f"{location.name}: {_why_no_logs(location.path)}")
    return logs


def _why_no_logs(path: str) -> str:
    """Return why a path is not a log directory, and what to give instead."""
    if "://" not in path:
        try:
            found = _by_its_surroundings(Path(path).absolute())
        except OSError:
            found = None
        if found is not None:
            return found
    return (
        "there is no partition in it; path must be the log directory itself (Kafka's log.dir), "
        "which all hosts of the cluster see"
    )


def _by_its_surroundings(given: Path) -> str | None:
    if not given.exists():
        return "the directory does not exist on this host"
    if (given / "commitlog").is_dir():
        return "this is a store of RocketMQ: use format rocketmq"
    if any(given.glob("*.log")):
        return f"this is a partition: give the log directory itself, {given.parent}"
    return None


def wanted_partitions(logs: LogDirectory, options: KafkaLogReadOptions) -> list[TopicPartition]:
    """Return the existing partitions that options select, by topic and number."""
    found = [(name.topic, name.partition) for name in logs.partitions()]
    return [name for name in found if is_wanted(name, options)]


def check_asked(found: list[TopicPartition], options: KafkaLogReadOptions) -> None:
    """Check that the topics and partitions that a batch query names exist.

    Raises:
        StoreError: a topic or a partition does not exist.
    """
    topics = {topic for topic, _ in found}
    for topic in options.topics or ():
        if topic not in topics:
            raise StoreError(f"{options.path}: {no_topic(topic, topics)}")
    for topic, partition in options.partitions or ():
        if (topic, partition) not in found:
            raise StoreError(f"{options.path}: partition {topic}-{partition} does not exist")


def is_wanted(name: TopicPartition, options: KafkaLogReadOptions) -> bool:
    """Return whether options select a partition."""
    topic, _ = name
    if options.partitions is not None:
        return name in options.partitions
    if options.topics is not None:
        return topic in options.topics
    if topic in INTERNAL_TOPICS:
        return False
    return options.topic_pattern is None or bool(re.fullmatch(options.topic_pattern, topic))
