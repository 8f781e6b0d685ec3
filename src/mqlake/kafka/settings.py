"""The settings of a topic that say how its log is cut into segments and indexed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mqlake.errors import StoreError

_DAY = 24 * 60 * 60 * 1000
_MAX_INT = 0x7FFFFFFF

# Kafka 4 allows segments below 1 MiB only under the second name.
_NAMES = {
    "segment.bytes": "segment_bytes",
    "internal.segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.index.bytes": "segment_index_bytes",
    "index.interval.bytes": "index_interval_bytes",
}


class LogSettings(msgspec.Struct, frozen=True):
    """A topic's settings, with Kafka's defaults. Upstream: `LogConfig`.

    Attributes:
        segment_bytes: a batch that would make a segment larger begins a new one.
        segment_ms: so does one that is this much later than the segment's first.
        segment_jitter_ms: taken off `segment_ms`; Kafka picks a random number below the setting.
        segment_index_bytes: size of an index file while it is written.
        index_interval_bytes: bytes of log from one index entry to the next.
        preallocate: make the file of a new segment as large as it may get.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False

    def __post_init__(self) -> None:
        for name in ("segment_bytes", "segment_index_bytes", "index_interval_bytes"):
            if not 0 <= getattr(self, name) <= _MAX_INT:
                raise StoreError(f"{name} must be from 0 to {_MAX_INT}")

    @classmethod
    def of_topic(cls, configs: Mapping[str, str]) -> LogSettings:
        """Return the settings by Kafka's own names; others are not looked at.

        Raises:
            StoreError: no number where there should be one.
        """
        try:
            numbers = {
                field: int(configs[name]) for name, field in _NAMES.items() if name in configs
            }
        except ValueError as error:
            raise StoreError(f"a topic's setting is {error}") from None
        return cls(**numbers, preallocate=configs.get("preallocate") == "true")
