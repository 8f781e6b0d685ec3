"""Recover logs after an unclean stop, as Kafka does when it starts.

Logs are cut at their first damaged or incomplete batch, segments after a cut are removed, and
index files, leader epochs and producer snapshots are rebuilt. A log directory is recovered from its
recovery points on; after a clean stop, nothing is recovered. With `--all`, all of it is recovered.
Afterwards, Kafka starts as after a clean stop. A single partition or segment is always recovered
completely. No broker may use the files meanwhile.

JSON: `partitions`, each with `path`, `segments` (their number afterwards), `logEndOffset`, `cut`
(bytes) and `removed` (base offsets of the removed segments); `seconds`.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka import arguments
from mqlake.cli.output import draw, write_json
from mqlake.cli.progress import reported_reading

EXAMPLES = (
    "mqlake kafka recover /var/lib/kafka/logs",
    "mqlake kafka recover /var/lib/kafka/logs/orders-0 --json",
)


def recover(
    path: arguments.Where,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Recover all segments, even after a clean stop."),
    ] = False,
    index_interval_bytes: arguments.IndexInterval = arguments.DEFAULT_INTERVAL,
    json: shared.Json = False,
) -> int:
    """Recover logs after an unclean stop, as Kafka does when it starts."""
    from mqlake.kafka.log.partition_path import find_partitions
    from mqlake.kafka.repair.recover import recover as run

    settings = arguments.settings(index_interval_bytes)
    start = time.perf_counter()
    with reported_reading(path):
        done = run(path, find_partitions(path), settings, everything=everything)
    seconds = time.perf_counter() - start
    if json:
        write_json({"partitions": done, "seconds": round(seconds, 3)})
    else:
        from mqlake.cli.views.kafka.recover import view

        draw(view(done, seconds))
    return 0
