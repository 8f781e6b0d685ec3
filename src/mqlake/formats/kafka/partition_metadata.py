"""Read and write `partition.metadata` (docs/formats/kafka/partition_metadata.md).

Upstream: `PartitionMetadataFile`, `Uuid`.
"""

from __future__ import annotations

import base64
import re
import uuid
from typing import NamedTuple

from mqlake.errors import FormatError

NAME = "partition.metadata"
VERSION = 0

_TEXT = re.compile(r"version:\s+([0-9]{1,9})\s*\r?\ntopic_id:\s+(\S+)\s*")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class PartitionMetadata(NamedTuple):
    """Format version and the topic's id."""

    version: int
    topic_id: uuid.UUID


def decode(data: bytes) -> PartitionMetadata:
    """Return what a file says.

    Raises:
        FormatError: no such text, or no id.
    """
    match = _TEXT.match(data.decode("utf-8", "replace"))
    if match is None:
        raise FormatError(f"not partition metadata: {data[:80]!r}")
    topic_id = decode_topic_id(match[2])
    if not topic_id.int:
        raise FormatError("partition metadata without a topic id")
    return PartitionMetadata(int(match[1]), topic_id)


def encode(metadata: PartitionMetadata) -> bytes:
    """Return the bytes of a file; there is no end of line after the id."""
    return f"version: {metadata.version}\ntopic_id: {encode_topic_id(metadata.topic_id)}".encode()


def decode_topic_id(text: str) -> uuid.UUID:
    """Return the id that Kafka writes as 22 characters of URL-safe base64.

    Raises:
        FormatError: another text.
    """
    if not _TOPIC_ID.fullmatch(text):
        raise FormatError(f"not a topic id: {text[:80]!r}")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))


def encode_topic_id(topic_id: uuid.UUID) -> str:
    """Return an id as Kafka writes it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
