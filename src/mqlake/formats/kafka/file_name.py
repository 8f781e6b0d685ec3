"""Names of the files and directories of a Kafka log directory (docs/formats/kafka/file_name.md).

Upstream: `LogFileUtils`, `UnifiedLog.parseTopicPartitionName`, `Topic.validate`.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

OFFSET_DIGITS = 20

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
META_PROPERTIES = "meta.properties"
METADATA_TOPIC = "__cluster_metadata"
"""KRaft's own log. It lies among the partitions, but is not one of the broker's."""
INTERNAL_TOPICS = frozenset(
    {METADATA_TOPIC, "__consumer_offsets", "__transaction_state", "__share_group_state"}
)
"""Kafka's own topics: `Topic.isInternal`, and that of KRaft."""

_NAME = re.compile(
    r"([0-9]{20})\.(log|index|timeindex|txnindex|snapshot)((?:\.(?:deleted|cleaned|swap))?)"
)
_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")
_MARKED = re.compile(r"(.+)-([0-9]{1,10})\.[0-9a-zA-Z]+-(delete|future|stray)")
_MAX_PARTITION = 0x7FFFFFFF
_MAX_OFFSET = 0x7FFFFFFFFFFFFFFF


class Kind(enum.StrEnum):
    """What a file of a partition holds; the value is its suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    SNAPSHOT = ".snapshot"


class State(enum.StrEnum):
    """What becomes of a file; the value is a second suffix."""

    LIVE = ""
    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"


class DirectoryState(enum.StrEnum):
    """What becomes of a partition's directory; the value is a suffix after a unique id."""

    LIVE = ""
    DELETED = "delete"
    FUTURE = "future"
    STRAY = "stray"


class FileName(NamedTuple):
    """A file's base offset (a snapshot's end offset), what it holds and what becomes of it."""

    offset: int
    kind: Kind
    state: State


class PartitionName(NamedTuple):
    """What a directory's name says."""

    topic: str
    partition: int
    state: DirectoryState


def file_name(offset: int, kind: Kind, state: State = State.LIVE) -> str:
    """Return the name of a file: 20 decimal digits and suffixes."""
    return f"{offset:0{OFFSET_DIGITS}d}{kind}{state}"


def parse_file_name(name: str) -> FileName | None:
    """Return what a file's name says, None if it is no such name."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) > _MAX_OFFSET:
        return None
    return FileName(int(match[1]), Kind(f".{match[2]}"), State(match[3]))


def partition_name(topic: str, partition: int) -> str:
    """Return the name of a partition's directory."""
    return f"{topic}-{partition}"


def parse_partition_name(name: str) -> PartitionName | None:
    """Return what a directory's name says, None if it is no such name.

    Topics have letters, digits, `.`, `_` and `-`, so the name is safe as a path component.
    """
    state = DirectoryState.LIVE
    topic, number = "", ""
    if match := _MARKED.fullmatch(name):
        # Of a long topic that is to be deleted, the name is cut to what fits.
        topic, number, state = match[1], match[2], DirectoryState(match[3])
    elif match := _PARTITION.fullmatch(name):
        topic, number = match[1], match[2]
    if not is_topic(topic) or int(number) > _MAX_PARTITION:
        return None
    return PartitionName(topic, int(number), state)


def is_topic(name: str) -> bool:
    """Return whether Kafka allows a topic of this name."""
    return name not in (".", "..") and re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) is not None
