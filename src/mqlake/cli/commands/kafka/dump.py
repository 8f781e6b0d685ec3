"""Print the records as a consumer would see them.

With `--json`, each record is one JSON object on a line: `offset`, `timestamp` (milliseconds, -1 for
none), `timestampType` (Kafka's names: `CreateTime`, `LogAppendTime`, `NoTimestampType`),
`leaderEpoch` (-1 for none), `key`, `value` (base64 or null), `headers` (pairs of name and value);
for a log directory, `topic` and `partition` come first. Without `--json`, each record is shown on
one line, with keys, values and headers as text if they are UTF-8, otherwise as hex; long ones are
truncated.

Without `--control`, control records are left out. Damaged parts are left out and reported on
stderr; the exit code is then 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.kafka import arguments
from mqlake.cli.output import encoded, write
from mqlake.cli.text import printable

if TYPE_CHECKING:
    from mqlake.formats.damage import Damage
    from mqlake.formats.kafka.batch import Record
    from mqlake.kafka.log.partition_path import PartitionPath

EXAMPLES = (
    "mqlake kafka dump /var/lib/kafka/logs/orders-0 --offset 1000 --max 20",
    "mqlake kafka dump /var/lib/kafka/logs/orders-0 --isolation read_committed --json",
)
DAMAGE_FOUND = 1
LINES = 1000
"""Lines that are written in one call."""


def dump(
    path: arguments.Where,
    offset: Annotated[
        int | None,
        typer.Option(
            "--offset", metavar="N", min=0, max=shared.LONGEST_TIME, help="First offset to print."
        ),
    ] = None,
    maximum: Annotated[
        int | None,
        typer.Option("--max", metavar="N", min=1, help="Maximum number of records per partition."),
    ] = None,
    isolation: arguments.Isolation = "read_uncommitted",
    control: Annotated[
        bool, typer.Option("--control", help="Include control records: the ends of transactions.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object for each record.")
    ] = False,
) -> int:
    """Print the records as a consumer would see them."""
    from mqlake.kafka.isolation import Isolation
    from mqlake.kafka.log.partition_path import find_partitions

    damaged = 0

    def tell(damage: Damage) -> None:
        nonlocal damaged
        damaged += 1
        where = f"{damage.file}, byte {damage.offset}"
        sys.stderr.write(f"mqlake: {printable(where)}: {printable(damage.reason)}\n")

    paths = find_partitions(path)
    for partition_path in paths.partitions:
        with partition_path.open() as partition:
            records = partition.records(
                offset, isolation=Isolation(isolation), control=control, on_damage=tell
            )
            lines = _json if json else _text
            _write_all(
                lines(partition_path, islice(records, maximum), named=paths.logs is not None)
            )
    return DAMAGE_FOUND if damaged else 0


def _json(
    partition_path: PartitionPath, records: Iterable[Record], *, named: bool
) -> Iterator[bytes]:
    import msgspec

    from mqlake.formats.kafka.record_json import to_json

    encode = msgspec.json.Encoder().encode
    name: dict[str, Any] = (
        {"topic": partition_path.topic, "partition": partition_path.partition} if named else {}
    )
    for record in records:
        yield encode(name | to_json(record)) + b"\n"


def _text(
    partition_path: PartitionPath, records: Iterable[Record], *, named: bool
) -> Iterator[bytes]:
    from mqlake.cli.views.kafka.records import line

    if named:
        yield encoded(printable(partition_path.name))
    for record in records:
        yield encoded(line(record))


def _write_all(lines: Iterator[bytes]) -> None:
    while some := list(islice(lines, LINES)):
        write(b"".join(some))
