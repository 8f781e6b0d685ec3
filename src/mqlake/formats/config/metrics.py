"""Read `config/transactionMetrics` and `config/timermetrics` (docs/formats/config.md).

RocketMQ 5: `TransactionMetrics`, `TimerMetrics`. JSON, though the names do not say so.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from mqlake.formats.config.base import DataVersion


class Metric(msgspec.Struct, frozen=True, rename="camel"):
    """A count of messages, which may be below 0, and when it last changed (milliseconds)."""

    count: int = 0
    time_stamp: int = 0


class TransactionMetrics(msgspec.Struct, frozen=True, rename="camel"):
    """Half messages not yet settled, by topic."""

    file_name: ClassVar[str] = "transactionMetrics"

    transaction_count: dict[str, Metric] = {}
    data_version: DataVersion = DataVersion()


class TimerMetrics(msgspec.Struct, frozen=True, rename="camel"):
    """Messages that wait in the timer wheel, by topic."""

    file_name: ClassVar[str] = "timermetrics"

    timing_count: dict[str, Metric] = {}
    data_version: DataVersion = DataVersion()
