"""Options and arguments that several commands for Kafka share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from mqlake.kafka.settings import LogSettings

Where = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="Segment (.log file), partition directory, or log directory (Kafka's log.dir).",
        show_default=False,
    ),
]
Isolation = Annotated[
    Literal["read_committed", "read_uncommitted"],
    typer.Option("--isolation", help="Read as a Kafka consumer with this isolation level."),
]
IndexInterval = Annotated[
    int,
    typer.Option(
        "--index-interval-bytes",
        metavar="N",
        min=0,
        max=(1 << 31) - 1,
        help="Bytes of log between index entries: the topic's index.interval.bytes.",
    ),
]
DEFAULT_INTERVAL = 4096


def settings(interval: int) -> LogSettings:
    """Return a topic's settings with this index interval."""
    from mqlake.kafka.settings import LogSettings

    return LogSettings(index_interval_bytes=interval)
