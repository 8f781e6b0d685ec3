"""Check every batch, and compare index entries with the batches.

The checksum and the fields of each batch are checked, and each entry of the offset, time and
transaction index is compared with its batch. Offsets must increase within and across segments. The
partition's producer snapshots, leader epochs and `partition.metadata` must be readable. With
`--deep`, every record is checked, too. It is not damage if an index has fewer entries than it
could, or if the last segment ends in the middle of a batch, as after a crash.

JSON: `path`, `ok`, `size` (bytes of log), `batches`, `records`, `partitions`, `seconds`. Each of
`partitions` has `path`, `segments` (`file`, `baseOffset`, `nextOffset`, `size`, `batches`,
`records`, `indexEntries`, `timeIndexEntries`, `damage`) and `otherDamage` (damage outside the
segments). Both `damage` and `otherDamage` are lists of objects with `file`, `offset`, `bytes`,
`reason`.

The exit code is 1 if damage was found.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka import arguments
from mqlake.cli.output import draw, timed, write_json
from mqlake.cli.progress import reported_reading

EXAMPLES = (
    "mqlake kafka verify /var/lib/kafka/logs",
    "mqlake kafka verify /var/lib/kafka/logs/orders-0 --deep --json",
)
DAMAGE_FOUND = 1


def verify(
    path: arguments.Where,
    deep: Annotated[bool, typer.Option("--deep", help="Check every record, too.")] = False,
    json: shared.Json = False,
) -> int:
    """Check every batch, and compare index entries with the batches."""
    from mqlake.kafka.log.partition_path import find_partitions
    from mqlake.kafka.verify.partitions import verify_partitions

    start = time.perf_counter()
    with reported_reading(path):
        report = verify_partitions(str(path), find_partitions(path).partitions, deep=deep)
    seconds = time.perf_counter() - start
    if json:
        write_json(timed(report, seconds))
    else:
        from mqlake.cli.views.kafka.verify import view

        draw(view(report, seconds))
    return 0 if report.ok else DAMAGE_FOUND
