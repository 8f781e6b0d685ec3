"""Find the batch of an offset, or the first record at or after a time.

The indexes are used as a broker uses them; wrong entries are ignored. A lookup by time gives the
answer of `KafkaConsumer.offsetsForTimes`. For a log directory, each partition is searched.

JSON: `found`, a list of objects with `path`, `topic`, `partition`, `offset` and `timestamp`
(milliseconds) of the record, `leaderEpoch`, and its batch: `file`, `position`, `size` (bytes),
`baseOffset`, `lastOffset`. With `--offset`, the record is the first at or after that offset.

The exit code is 1 if nothing matched.
"""

from __future__ import annotations

from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka import arguments
from mqlake.cli.output import draw, write_json
from mqlake.cli.progress import reported_reading

EXAMPLES = (
    "mqlake kafka lookup /var/lib/kafka/logs/orders-0 --offset 4711",
    "mqlake kafka lookup /var/lib/kafka/logs --time 1795206616198 --json",
)
NOTHING_MATCHED = 1


def lookup(
    path: arguments.Where,
    offset: Annotated[
        int | None,
        typer.Option(
            "--offset",
            metavar="N",
            min=0,
            max=shared.LONGEST_TIME,
            help="Find the batch of this offset, or of the next record if no record has it.",
        ),
    ] = None,
    time: Annotated[
        int | None,
        typer.Option(
            "--time",
            metavar="MS",
            min=0,
            max=shared.LONGEST_TIME,
            help="Find the first record at or after this time, in milliseconds since 1970.",
        ),
    ] = None,
    isolation: arguments.Isolation = "read_uncommitted",
    json: shared.Json = False,
) -> int:
    """Find the batch of an offset, or the first record at or after a time."""
    if (offset is None) == (time is None):
        raise shared.UsageError("name what to find: --offset N or --time MS")

    from mqlake.kafka.isolation import Isolation
    from mqlake.kafka.log.partition_path import find_partitions
    from mqlake.kafka.lookup import by_offset, by_time

    with reported_reading(path):
        found = [
            answer
            for partition_path in find_partitions(path).partitions
            if (
                answer := by_time(partition_path, time, Isolation(isolation))
                if time is not None
                else by_offset(partition_path, offset or 0, Isolation(isolation))
            )
        ]
    if json:
        write_json({"found": found})
    else:
        from mqlake.cli.views.kafka.lookup import view

        draw(view(found))
    return 0 if found else NOTHING_MATCHED
