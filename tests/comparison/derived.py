"""What is derived from a log: a rebuild in place, a store from Kafka's logs, a lake table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from mqlake.jobs.convert.to_kafka import convert_to_kafka
from mqlake.jobs.convert.to_rocketmq import convert_to_rocketmq
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild.job import rebuild
from mqlake.lake.files.compaction import merge
from mqlake.lake.options import Format
from mqlake.lake.tables.opening import open_table
from mqlake.store.reader import StoreReader
from tests.comparison.local import PLACE, TOPIC, LocalWorkload, stored, take_over
from tests.comparison.run import Step, View
from tests.lake.tables import tables

_QUEUES = 0, 1


def _messages(path: Path) -> Mapping[str, object]:
    """Return each queue of a store, and who finds a key."""
    with StoreReader.open(path) as reader:
        found = {
            f"queue {queue_id}": tuple(
                record.body[:3] for record in reader.get(TOPIC, queue_id, 0, 1000).records
            )
            for queue_id in _QUEUES
        }
        keys = {
            f"key k{number}": tuple(record.body[:3] for record in records)
            for number in range(8)
            if (records := reader.by_key(TOPIC, f"k{number}").records)
        }
    return found | keys


def _damage(root: Path) -> None:
    """Have a store whose queues and index are empty files."""
    take_over(root, 8)
    for path in (root / "store").glob("consumequeue/*/*/*"):
        path.write_bytes(bytes(path.stat().st_size))


def _rebuilds(root: Path) -> Iterator[Step]:
    yield Step("rebuild", lambda: rebuild(root / "store", LocalEngine(1)))
    yield Step("rebuild again", lambda: rebuild(root / "store", LocalEngine(1)))


def _look_at_store(root: Path) -> View:
    return _messages(root / "store")


@cache
def _logs() -> Path:
    """Return Kafka's logs of a store."""
    path = Path(PLACE.name, "logs")
    convert_to_kafka(stored(8), LocalEngine(1), out=path)
    return path


def _take_logs(root: Path) -> None:
    shutil.copytree(_logs(), root / "kafka")


def _converts(root: Path) -> Iterator[Step]:
    act = lambda: convert_to_rocketmq(root / "kafka", LocalEngine(1), out=root / "store")  # noqa: E731
    yield Step("convert", act, is_atomic=True)


def _look_at_converted(root: Path) -> View:
    seen = dict(_messages(root / "store")) if (root / "store").is_dir() else {}
    return seen | {"names": tuple(sorted(path.name for path in root.iterdir()))}


def _follows(root: Path) -> Iterator[Step]:
    """Commit micro-batches, each in a run of its own, as `follow` does."""
    options = tables.options(root / "table", Format.PARQUET)

    @reports_disk_faults
    def add(number: int) -> None:
        table = open_table(options)
        if table.last_batch(tables.FOLLOWER) < number:
            rows = [tables.row(3 * number + each, day=20_000 + each % 2) for each in range(3)]
            tables.add(table, number, rows)

    @reports_disk_faults
    def publish() -> None:
        table = open_table(options)
        table.replace([merge(job) for job in table.merges(is_last=True)])

    for number in range(4):
        yield Step(f"add {number}", lambda number=number: add(number))
        if number % 2:
            yield Step("publish", publish)


def _look_at_table(root: Path) -> View:
    if not (root / "table").is_dir():
        return {}
    shown = tables.numbers(Format.PARQUET, root / "table")
    assert len({*shown}) == len(shown), f"rows are there twice: {shown}"
    return {"shown": tuple(shown)}


DERIVED_WORKLOADS = [
    LocalWorkload("rebuild", _rebuilds, _look_at_store, _damage),
    LocalWorkload("convert-back", _converts, _look_at_converted, _take_logs),
    LocalWorkload("follow-parquet", _follows, _look_at_table),
]
