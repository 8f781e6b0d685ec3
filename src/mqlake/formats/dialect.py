"""Name the RocketMQ generation whose files are read or written (docs/formats/index_file.md)."""

from __future__ import annotations

import enum


class Dialect(enum.Enum):
    """What differs on disk between RocketMQ releases: index keys and checkpoint fields."""

    V4_9 = "4.9"
    V5_3 = "5.3"
    V5_5 = "5.5"
