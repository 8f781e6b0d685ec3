"""Read `config/delayOffset.json` (docs/formats/config.md). Upstream: `ScheduleMessageService`."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from mqlake.formats.config.base import DataVersion


class DelayOffsets(msgspec.Struct, frozen=True, rename="camel"):
    """How far each delay level (1 the first) was delivered: level, then queue offset."""

    file_name: ClassVar[str] = "delayOffset.json"

    offset_table: dict[int, int] = {}
    data_version: DataVersion = DataVersion()
