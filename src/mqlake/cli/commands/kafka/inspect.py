"""Show what partitions hold and how they were left.

Reads indexes and the ends of logs, not whole logs. A partition ends where its last good batch ends;
a broker of a replicated one shows records up to its high watermark.

JSON: `path`, `lastStopWasClean` (null for a partition by itself, and while a broker runs), `owner`
(process id), `partitions`, `damage`. Each of `partitions` has `path`, `topic`, `partition`,
`topicId`, `logStartOffset`, `lastStableOffset` (the first that may still be undecided),
`logEndOffset`, `highWatermark` (of the checkpoint, else null), `size` (bytes), `leaderEpochs`
(`epoch`, `startOffset`), `segments` (`file`, `baseOffset`, `nextOffset`, `size`,
`largestTimestamp`, `indexEntries`, `timeIndexEntries`, `abortedTransactions`) and `damage` (objects
with `file`, `offset`, `bytes`, `reason`): files that contradict themselves.

Exit code 0 also where there is damage: `verify` is the command that judges.
"""

from __future__ import annotations

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka import arguments
from mqlake.cli.output import draw, write_json

EXAMPLES = (
    "mqlake kafka inspect /var/lib/kafka/logs",
    "mqlake kafka inspect /var/lib/kafka/logs/orders-0 --json",
)


def inspect(path: arguments.Where, json: shared.Json = False) -> int:
    """Show what partitions hold and how they were left."""
    from mqlake.kafka.log.partition_path import find_partitions
    from mqlake.kafka.summary import inspect as look

    summary = look(str(path), find_partitions(path))
    if json:
        write_json(summary)
    else:
        from mqlake.cli.views.kafka.inspect import view

        draw(view(summary))
    return 0
