"""Rebuild a store that Apache RocketMQ wrote, and compare with RocketMQ's own files and answers.

`make demo` runs this. A RocketMQ 5.5.0 broker and real clients wrote `rocketmq-5.5-store.tar.xz`;
`rocketmq-5.5-answers.json` is what RocketMQ's DefaultMessageStore answered on it. The exit code is
1 where anything differs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tarfile
import tempfile
import time
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from mqlake.formats import Record
from mqlake.jobs import Engine
from mqlake.jobs.rebuild import rebuild
from mqlake.spark import messages, open_session
from mqlake.store import StoreReader

HERE = Path(__file__).parent
QUERY = """\
SELECT topic, count(*) AS messages, count(DISTINCT queueId) AS queues,
       round(avg(length(body))) AS bytes, max(storeTimestamp) AS last
FROM messages GROUP BY topic ORDER BY messages DESC LIMIT 5"""

Pair = tuple[Any, Any]
"""What RocketMQ has, and what mqlake has."""

console = Console(highlight=False)


def main() -> int:
    """Run all steps; return 1 where something differs from RocketMQ's own."""
    start = time.perf_counter()
    console.print(Panel.fit("[bold]mqlake[/] on a store that Apache RocketMQ 5.5.0 wrote"))
    with tempfile.TemporaryDirectory(prefix="mqlake-demo-") as scratch:
        original = unpack(Path(scratch))
        inspect(original)
        copy = without_derived_files(original)
        step("Start Spark on this machine, and rebuild what is gone")
        asked = time.perf_counter()
        with open_session() as session:
            fact("Spark", f"{session.spark.version}, ready in {time.perf_counter() - asked:.1f} s")
            rebuild_with(session.engine, copy)
            differences = compare_files(original, copy) + compare_answers(copy)
            query(session.spark, copy)
    if differences:
        console.print(f"\n[bold red]{differences} differences from RocketMQ's own[/]")
        return 1
    seconds = time.perf_counter() - start
    console.print(f"[bold green]✔ Files and answers equal RocketMQ's own. {seconds:.0f} s[/]")
    return 0


def unpack(directory: Path) -> Path:
    """Unpack the store that is shipped beside this file."""
    with tarfile.open(HERE / "rocketmq-5.5-store.tar.xz") as archive:
        # Early releases of Python 3.11 have no filters, and take no argument for one.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(directory)
    (unpacked,) = directory.iterdir()
    return unpacked


def inspect(store: Path) -> None:
    """Show what the store holds."""
    step("Inspect the store")
    with StoreReader.open(store) as reader:
        report = reader.inspect()
    log = report.commit_log
    queues = [queue for topic in report.topics for queue in topic.queues]
    count = sum(queue.max_offset - queue.min_offset for queue in queues)
    entries = sum(file.index_count - 1 for file in report.index)
    fact("last stop", "clean" if report.last_stop_was_clean else "not clean")
    fact("commit log", f"{log.max_offset - log.min_offset:,} bytes in {len(log.files)} files")
    fact("topics", f"{len(report.topics)} with {len(queues)} queues, {count:,} messages")
    fact("index", f"{len(report.index)} files with {entries:,} entries")


def without_derived_files(store: Path) -> Path:
    """Return a copy of the store that has nothing but its commit log and configuration."""
    step("Throw away what RocketMQ derives from the log, in a copy")
    copy = store.with_name("copy")
    shutil.copytree(store, copy)
    for name in ("consumequeue", "index"):
        fact("removed", f"{name}/, {len(digests(copy / name))} files")
        shutil.rmtree(copy / name)
    (copy / "checkpoint").unlink()
    fact("removed", "checkpoint")
    return copy


def rebuild_with(engine: Engine, store: Path) -> None:
    """Rebuild in place. The sizes of files and the delay levels are the broker's configuration."""
    start = time.perf_counter()
    report = rebuild(store, engine, queue_file_size=20_000, hash_slots=1000, max_index=4000)
    seconds = time.perf_counter() - start
    made = f"{report.queue_entries:,} queue entries and {report.index_entries:,} index entries"
    fact("rebuilt", f"{made} in {seconds:.1f} s")


def compare_files(original: Path, copy: Path) -> int:
    """Compare every derived file with RocketMQ's; return how many differ."""
    step("Compare with the files that RocketMQ wrote, byte for byte")
    queues, own_queues = digests(original / "consumequeue"), digests(copy / "consumequeue")
    index, own_index = digests(original / "index"), digests(copy / "index")
    # RocketMQ names an index file by the time it was made; its content is what counts.
    return compare("consume queues", pair(queues, own_queues)) + compare(
        "index files", list(zip_longest(index.values(), own_index.values()))
    )


def compare_answers(store: Path) -> int:
    """Ask what RocketMQ was asked; return how many answers differ."""
    step("Ask what RocketMQ was asked")
    recorded = json.loads((HERE / "rocketmq-5.5-answers.json").read_text(encoding="utf-8"))
    with StoreReader.open(store) as reader:
        differences = sum(
            compare(name, [ask(reader, row) for row in recorded[kind]])
            for name, kind, ask in (
                ("by key", "byKey", by_key),
                ("by time", "byTime", by_time),
                ("by id", "byId", by_id),
            )
        )
        collided = sum(right(reader, row) != row["offsets"] for row in recorded["byKey"])
    fact("", f"[dim]in {collided} of them RocketMQ also has other keys of the same hash[/]")
    return differences


def by_key(reader: StoreReader, row: dict[str, Any]) -> Pair:
    """Ask for the messages with a key that were stored in a time; compare their offsets."""
    asked = [row[name] for name in ("topic", "key", "begin", "end", "maxNum", "indexType")]
    ours = [record.physical_offset for record in reader.by_key(*asked).records]
    theirs = right(reader, row)
    if len(theirs) < len(row["offsets"]) == row["maxNum"]:
        # Messages of other keys used up RocketMQ's limit, so it has only the newest of these.
        ours = ours[len(ours) - len(theirs) :]
    return theirs, ours


def right(reader: StoreReader, row: dict[str, Any]) -> list[int]:
    """Return RocketMQ's answer without the messages that do not have the key, each once."""
    records = [record for offset in row["offsets"] if (record := reader.record_at(offset))]
    return sorted({r.physical_offset for r in records if row["key"] in keys(r, row["indexType"])})


def keys(record: Record, index_type: str | None) -> list[str | None]:
    """Return what a record is indexed by."""
    return [record.tags] if index_type == "T" else [record.unique_key, *record.keys]


def by_time(reader: StoreReader, row: dict[str, Any]) -> Pair:
    """Ask for the first queue offset from a time on, and for the last up to it."""
    asked = row["topic"], row["queueId"], row["timestamp"]
    ours = reader.offset_by_time(*asked, "lower"), reader.offset_by_time(*asked, "upper")
    return (row["lower"], row["upper"]), ours


def by_id(reader: StoreReader, row: dict[str, Any]) -> Pair:
    """Ask for the message with an id; at some of the offsets, none starts."""
    known = row["found"]
    record = reader.by_message_id(row["msgId"]) if known else reader.record_at(row["offset"])
    ours = (record.topic, record.queue_id, record.queue_offset) if record else (None, None, None)
    return (row["topic"], row["queueId"], row["queueOffset"]), ours


def query(spark: Any, store: Path) -> None:
    """Show the messages as a table of Spark SQL."""
    step("The same messages as a Spark DataFrame")
    messages(spark, str(store)).createOrReplaceTempView("messages")
    for line in QUERY.splitlines():
        console.print(f"  [cyan]{line}[/]")
    answer = spark.sql(QUERY)
    table = Table(box=SIMPLE_HEAD)
    for name, kind in answer.dtypes:
        table.add_column(name, justify="left" if kind == "string" else "right")
    for row in answer.collect():
        table.add_row(*(f"{v:,.0f}" if isinstance(v, int | float) else str(v)[:19] for v in row))
    console.print(table)


def compare(name: str, answers: list[Pair]) -> int:
    """Say how many of RocketMQ's are the same here; return the number of differences."""
    same = sum(theirs == ours for theirs, ours in answers)
    differences = len(answers) - same
    fact(name, f"[{'red' if differences else 'green'}]{same} of {len(answers)} equal[/]")
    return differences


def pair(theirs: dict[str, str], ours: dict[str, str]) -> list[Pair]:
    """Pair what has the same name; None stands for what only one has."""
    return [(theirs.get(name), ours.get(name)) for name in sorted({*theirs, *ours})]


def digests(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a directory, by name, in the order of the names."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def step(title: str) -> None:
    """Begin a step of the transcript."""
    console.print(f"\n[bold]{title}[/]")


def fact(name: str, value: str) -> None:
    """Write one line of a step."""
    console.print(f"  [dim]{name:<15}[/] {value}")


if __name__ == "__main__":
    sys.exit(main())
