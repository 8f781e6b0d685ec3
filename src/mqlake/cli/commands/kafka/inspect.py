"""Show partitions' offsets, segments and shutdown state.

Only indexes and the ends of logs are read. A partition ends where its last good batch ends. If it
is replicated, consumers see its records only up to the high watermark.

JSON: `path`, `lastStopWasClean` (null for a single partition, and while a broker runs), `owner`
(process id), `partitions`, `damage`. Each of `partitions` has `path`, `topic`, `partition`,
`topicId`, `logStartOffset`, `lastStableOffset` (no record before it is in an open transaction),
`logEndOffset`, `highWatermark` (from the checkpoint; null if it has none), `size` (bytes),
`leaderEpochs` (`epoch`, `startOffset`), `segments` (`file`, `baseOffset`, `nextOffset`, `size`,
`largestTimestamp`, `indexEntries`, `timeIndexEntries`, `abortedTransactions`) and `damage`: what is
inconsistent in the partition's files, as objects with `file`, `offset`, `bytes`, `reason`.

The exit code is 0 even if there is damage; use `verify` to check partitions.
"""

from __future__ import annotations

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka import arguments
from mqlake.cli.output import draw, write_json
from mqlake.cli.progress import reported_reading

EXAMPLES = (
    "mqlake kafka inspect /var/lib/kafka/logs",
    "mqlake kafka inspect /var/lib/kafka/logs/orders-0 --json",
)


def inspect(path: arguments.Where, json: shared.Json = False) -> int:
    """Show partitions' offsets, segments and shutdown state."""
    from mqlake.kafka.log.partition_path import find_partitions
    from mqlake.kafka.summary import inspect as look

    with reported_reading(path):
        summary = look(str(path), find_partitions(path))
    if json:
        write_json(summary)
    else:
        from mqlake.cli.views.kafka.inspect import view

        draw(view(summary))
    return 0
