"""Read `config/consumerOffset.json` (docs/formats/config.md). Upstream: `ConsumerOffsetManager`."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from mqlake.formats.config.base import DataVersion

TOPIC_GROUP_SEPARATOR = "@"


class ConsumerOffsets(msgspec.Struct, frozen=True, rename="camel"):
    """Where each group stands: `topic@group`, then queue id, then queue offset."""

    file_name: ClassVar[str] = "consumerOffset.json"

    offset_table: dict[str, dict[int, int]] = {}
    pull_offset_table: dict[str, dict[int, int]] = {}
    reset_offset_table: dict[str, dict[int, int]] = {}
    group_topic_map: dict[str, list[str]] = {}
    data_version: DataVersion = DataVersion()


class LmqConsumerOffsets(msgspec.Struct, frozen=True, rename="camel"):
    """Where each group of a light message queue stands: `topic@group`, then queue offset."""

    file_name: ClassVar[str] = "lmqConsumerOffset.json"

    lmq_offset_table: dict[str, int] = {}
    offset_table: dict[str, dict[int, int]] = {}
    data_version: DataVersion = DataVersion()
