"""Convert a RocketMQ store to a Kafka log directory, or the reverse.

Each queue becomes a partition, and each message a record: the property KEYS becomes its key, other
properties become headers. `--to rocketmq` does the reverse. docs/how-to/convert.md describes the
whole mapping. The source system's own topics, and topics whose names the target system reserves or
does not allow, are left out and reported. It is an error if `--topic` names one of them.

The new directory appears when it is complete. Damaged parts of the source are left out and
reported.

JSON: `source`, `output`, `to`, `topics`, `partitions`, `records`, `deletedTopicMessages` (messages
of a store's deleted topics, which are left out), `bytesWritten`, `leftOut` (objects with `topic`,
`reason`), `damage` (objects with `file`, `offset`, `bytes`, `reason`), `seconds`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka.arguments import Isolation
from mqlake.cli.engines import check_store, open_engine
from mqlake.cli.output import draw, timed, write_json

if TYPE_CHECKING:
    from mqlake.jobs.convert.report import ConvertReport
    from mqlake.jobs.engine import Engine

EXAMPLES = (
    "mqlake convert /data/rocketmq/store --to kafka --out /data/kafka-logs",
    "mqlake convert /var/lib/kafka/logs --to rocketmq --out store --topic orders",
)


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="RocketMQ store directory, or Kafka log directory (log.dir).",
            show_default=False,
        ),
    ],
    to: Annotated[
        Literal["kafka", "rocketmq"],
        typer.Option("--to", help="Target format.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New or empty directory to write to.")],
    topic: Annotated[
        list[str] | None, typer.Option(help="Only this topic; may be repeated.")
    ] = None,
    isolation: Isolation = "read_committed",
    engine: shared.Engine = "spark",
    master: shared.Master = None,
    progress: shared.Progress = None,
    json: shared.Json = False,
) -> int:
    """Convert a RocketMQ store to a Kafka log directory, or the reverse."""
    from mqlake.jobs.convert.target import require_new

    require_new(out)
    check = check_store if to == "kafka" else _check_logs
    with open_engine(engine, master, progress, reads=source, writes=out, check=check) as chosen:
        start = time.perf_counter()
        report = _run(chosen, to, source, out, topic or [], isolation)
        seconds = time.perf_counter() - start
    if json:
        write_json(timed(report, seconds))
    else:
        from mqlake.cli.views.convert import view

        draw(view(report, seconds))
    return 0


def _run(
    engine: Engine, to: str, source: Path, out: Path, topics: list[str], isolation: str
) -> ConvertReport:
    if to == "kafka":
        from mqlake.jobs.convert.to_kafka import convert_to_kafka

        return convert_to_kafka(source, engine, out=out, topics=topics)
    from mqlake.jobs.convert.to_rocketmq import convert_to_rocketmq
    from mqlake.kafka.isolation import Isolation as Level

    return convert_to_rocketmq(source, engine, out=out, topics=topics, isolation=Level(isolation))


def _check_logs(path: Path) -> None:
    from mqlake.jobs.convert.log_directory import check_logs

    check_logs(path)
