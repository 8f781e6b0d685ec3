"""Rebuild `.index`, `.timeindex` and `.txnindex` files from the logs.

The logs are not changed. The entries are those that Kafka's recovery would write. If a log is
damaged, its indexes end at the damage; only `recover` cuts the log there. No broker may run on the
log directory. New files replace the old ones when they are complete.

JSON: `partitions`, each with `path` and `segments`; `seconds`. Each of `segments` has `file`,
`baseOffset`, `size`, `indexed` (bytes of log before the first damage), `indexEntries`,
`timeIndexEntries`, `abortedTransactions` and `damage` (objects with `file`, `offset`, `bytes`,
`reason`).

The exit code is 1 if a log is damaged.
"""

from __future__ import annotations

import time

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka import arguments
from mqlake.cli.output import draw, write_json
from mqlake.cli.progress import reported_reading

EXAMPLES = (
    "mqlake kafka rebuild-index /var/lib/kafka/logs/orders-0",
    "mqlake kafka rebuild-index /var/lib/kafka/logs --index-interval-bytes 1024 --json",
)
DAMAGE_FOUND = 1


def rebuild_index(
    path: arguments.Where,
    index_interval_bytes: arguments.IndexInterval = arguments.DEFAULT_INTERVAL,
    json: shared.Json = False,
) -> int:
    """Rebuild the index files from the logs."""
    from mqlake.kafka.log.partition_path import find_partitions
    from mqlake.kafka.repair.rebuild_index import rebuild_index as rebuild

    settings = arguments.settings(index_interval_bytes)
    start = time.perf_counter()
    with reported_reading(path):
        done = [
            (partition_path, rebuild(partition_path, settings))
            for partition_path in find_partitions(path).partitions
        ]
    seconds = time.perf_counter() - start
    if json:
        partitions = [
            {"path": str(partition_path.path), "segments": made} for partition_path, made in done
        ]
        write_json({"partitions": partitions, "seconds": round(seconds, 3)})
    else:
        from mqlake.cli.views.kafka.rebuild_index import view

        draw(view(done, seconds))
    is_damaged = any(segment.damage for _, made in done for segment in made)
    return DAMAGE_FOUND if is_damaged else 0
