"""`mqlake follow` inside of a real Spark."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.cli.commands import follow as command_of_the_program
from mqlake.errors import DiskError, StoreError
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.verify import verify
from mqlake.lake.follow.accounting import check
from mqlake.lake.followers.identity import held
from mqlake.lake.options import FollowOptions, Format, StoreQuery
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow.derived_files import dispatch
from mqlake.spark.follow.job import FollowReport, follow
from mqlake.store import BlockingMessageStore, Message, StoreReader
from tests.golden import store
from tests.lake.tables.tables import data_files, read
from tests.query.store.mixed import MixedStore
from tests.query.store.rows import as_recorded, batch_rows, in_order
from tests.query.store.truth import comparable, expected_rows
from tests.store.log_copies import copy_log

pytestmark = [pytest.mark.spark]


SMALL = {"mappedFileSizeCommitLog": 1 << 16}


def options(path: Path, format_: Format, out: Path, **others: Any) -> FollowOptions:
    given = {"once": True, **others}
    return FollowOptions(
        store=path, format=format_, out=out, checkpoint=out / "_mqlake" / "checkpoint", **given
    )


def rows_of(format_: Format, path: Path) -> list[dict[str, Any]]:
    """Return the rows of a table in the form of the recorded messages."""
    rows = read(format_, path).to_pylist()
    for row in rows:
        row["properties"] = dict(row["properties"])
        row.pop("day", None)
    return in_order(as_recorded(row) for row in rows)


@pytest.mark.parametrize(
    ("format_", "name"),
    [(Format.DELTA, "rmq5-clean"), (Format.ICEBERG, "rmq49-clean"), (Format.PARQUET, "rmq5-torn")],
)
def test_every_message_in_every_column(
    session: ClassicSession, tmp_path: Path, format_: Format, name: str
) -> None:
    golden, out = store(name), tmp_path / "table"
    truth = expected_rows(golden)
    source = {"maxOffsetsPerTrigger": str(len(truth) // 2 + 1)}
    progress: list[tuple[str, int, int]] = []
    given = options(golden.path, format_, out, source=source)
    report = follow(session, given, progress=lambda *step: progress.append(step))
    assert (report.batches, report.messages) == (2, len(truth))
    assert [comparable(row) for row in rows_of(format_, out)] == truth
    topics = {row["topic"] for row in truth}
    assert len(topics) <= len(data_files(format_, out)) < report.files
    end = log_end(golden.path)
    assert ("follow", end, end) in progress

    again = follow(session, given)
    assert (again.batches, again.messages) == (0, 0)


def test_tables_of_earlier_versions_keep_bodies_as_stored(
    session: ClassicSession, tmp_path: Path
) -> None:
    mixed, out = MixedStore(tmp_path / "store", seed=1), tmp_path / "table"
    given = options(mixed.path, Format.DELTA, out)
    assert follow(session, given).messages == len(mixed.sent)
    rows = sorted(rows_of(Format.DELTA, out), key=lambda row: row["queueOffset"])
    assert [row["body"] for row in rows] == [one["body"] for one in mixed.sent]
    assert check(given, LocalEngine(1)).ok

    old = options(mixed.path, Format.DELTA, tmp_path / "old", source={"decompress": "false"})
    follow(session, old)
    for path in (tmp_path / "old").rglob("*.json"):
        if "_mqlake" in str(path):
            path.write_text(path.read_text().replace('"decompress":"false"', ""))
    old = options(mixed.path, Format.DELTA, tmp_path / "old")
    assert follow(session, old).messages == 0
    assert rows_of(Format.DELTA, tmp_path / "old") == batch_rows(mixed.path, decompress=False)
    assert check(old, LocalEngine(1)).ok


@pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])
def test_an_empty_store_is_an_empty_table(
    session: ClassicSession, tmp_path: Path, format_: Format
) -> None:
    BlockingMessageStore.open(tmp_path / "store").close()
    given = options(tmp_path / "store", format_, tmp_path / "table")
    assert follow(session, given).messages == 0
    assert read(format_, tmp_path / "table").num_rows == 0
    with BlockingMessageStore.open(tmp_path / "store") as live:
        live.put(Message("A", b"first"))
    assert follow(session, given).messages == 1
    assert read(format_, tmp_path / "table")["body"].to_pylist() == [b"first"]


def test_a_driver_was_killed_while_it_recorded_its_first_batch(
    session: ClassicSession, tmp_path: Path
) -> None:
    with BlockingMessageStore.open(tmp_path / "store") as live:
        live.put(Message("A", b"first"))
    given = options(tmp_path / "store", Format.DELTA, tmp_path / "table")
    with held(given):
        pass
    offsets = given.checkpoint / "offsets"
    for name in (".0.5e0f1c9e.tmp", "..0.5e0f1c9e.tmp.crc"):
        offsets.mkdir(exist_ok=True)
        (offsets / name).write_bytes(b"v1")
    assert follow(session, given).messages == 1
    assert sorted(path.name for path in offsets.glob("[0-9]*")) == ["0"]


def test_a_growing_store(session: ClassicSession, tmp_path: Path) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    stop = threading.Event()
    reports: list[FollowReport] = []
    given = options(path, Format.DELTA, out, once=False, processing_time="0 seconds", target_lag=0)

    def run() -> None:
        reports.append(follow(session, given, stop))

    bodies = [str(number).encode() for number in range(300)]
    with BlockingMessageStore.open(path, SMALL) as live:
        live.put(Message("A", bodies[0]))
        follower = threading.Thread(target=run)
        follower.start()
        try:
            for number, body in enumerate(bodies[1:], 1):
                live.put(Message(f"Topic{number // 100}", body, queue_id=number % 3))
                if number % 100 == 0:
                    wait_for(first_version(out).exists, follower)
            wait_for(first_version(out).exists, follower)
            wait_for(lambda: read(Format.DELTA, out).num_rows == len(bodies), follower)
        finally:
            stop.set()
            follower.join()
    assert [report.messages for report in reports] == [len(bodies)]
    assert Counter(read(Format.DELTA, out)["body"].to_pylist()) == Counter(bodies)


def planners() -> list[int]:
    """Return the processes of Python in which this process's Spark plans streaming queries."""
    parents: dict[int, int] = {}
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            number = int(path.name)
            status = (path / "status").read_text()
            parents[number] = int(status.partition("\nPPid:")[2].split(maxsplit=1)[0])
            if b"streaming_source_runner" in (path / "cmdline").read_bytes():
                found.append(number)
    return [number for number in found if os.getpid() in ancestors(number, parents)]


def ancestors(number: int, parents: dict[int, int]) -> Iterator[int]:
    """Yield the parent of a process, its parent, and so on."""
    while (parent := parents.get(number, 0)) != 0:
        yield parent
        number = parent


def test_a_lost_worker_of_python(
    session: ClassicSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    stop, steps = threading.Event(), list[tuple[str, int, int]]()
    given = options(path, Format.DELTA, out, once=False, processing_time="0 seconds", target_lag=0)
    reports: list[FollowReport] = []

    def run() -> None:
        reports.append(follow(session, given, stop, lambda *step: steps.append(step)))

    others = set(planners())
    with BlockingMessageStore.open(path, SMALL) as live:
        live.put(Message("A", b"before"))
        follower = threading.Thread(target=run)
        follower.start()
        try:
            wait_for(first_version(out).exists, follower)
            wait_for(lambda: read(Format.DELTA, out).num_rows == 1, follower)
            lost = set(planners()) - others
            assert lost
            for number in lost:
                os.kill(number, signal.SIGKILL)
            live.put(Message("A", b"after"))
            wait_for(lambda: read(Format.DELTA, out).num_rows == 2, follower)
        finally:
            stop.set()
            follower.join()
    assert sorted(read(Format.DELTA, out)["body"].to_pylist()) == [b"after", b"before"]
    assert "a Python worker of Spark was lost" in caplog.text
    assert steps[0] == ("first batch", 0, 1)
    assert ("first batch", 1, 1) in steps


def test_a_topic_that_does_not_exist(
    session: ClassicSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = options(
        store("rmq5-clean").path, Format.DELTA, tmp_path / "table", source={"subscribe": "TopcA"}
    )
    assert follow(session, given).messages == 0
    assert "topic 'TopcA' does not exist; the nearest is TopicA" in caplog.text


def test_small_files_are_merged_while_nothing_arrives(
    session: ClassicSession, tmp_path: Path
) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    stop = threading.Event()
    reports: list[FollowReport] = []
    given = options(
        path, Format.DELTA, out, once=False, processing_time="0 seconds", target_lag=0,
        compact_every=3,
    )  # fmt: skip

    def run() -> None:
        reports.append(follow(session, given, stop))

    with BlockingMessageStore.open(path, SMALL) as live:
        live.put(Message("A", b"0"))
        follower = threading.Thread(target=run)
        follower.start()
        try:
            for number in range(1, 4):
                wait_for(first_version(out).exists, follower)
                wait_for(lambda count=number: read(Format.DELTA, out).num_rows == count, follower)
                if number < 3:
                    live.put(Message("A", b"%d" % number))
            wait_for(lambda: len(data_files(Format.DELTA, out)) == 1, follower)
        finally:
            stop.set()
            follower.join()
    assert [(one.batches, one.files_merged) for one in reports] == [(3, 3)]
    assert sorted(read(Format.DELTA, out)["body"].to_pylist()) == [b"0", b"1", b"2"]


def first_version(out: Path) -> Path:
    """Return the file with which a Delta table begins; its directory is there before."""
    return out / "_delta_log" / f"{0:020d}.json"


def wait_for(condition: Any, thread: threading.Thread) -> None:
    """Wait until something is so, as long as the thread lives."""
    while not condition():
        assert thread.is_alive()
        thread.join(0.2)


def test_the_program_stops_on_sigterm(tmp_path: Path) -> None:
    path, out = store("rmq5-clean").path, tmp_path / "table"
    command = [sys.executable, "-m", "mqlake", "follow", path, "--to", "parquet", "--out", out]
    given = ["--json", "--progress", "--subscribe", "TopicA", "--publish-after", "100000"]
    with subprocess.Popen(
        [*command, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr is not None
        assert program.stdout is not None
        try:
            line = program.stderr.readline()
            while "follow: " not in line:
                assert line
                line = program.stderr.readline()
            program.send_signal(signal.SIGTERM)
            answer, rest = program.communicate(timeout=120)
        finally:
            program.kill()
    assert program.returncode == 0, rest
    assert answer.count("\n") == 1
    truth = [row for row in expected_rows(store("rmq5-clean")) if row["topic"] == "TopicA"]
    report = json.loads(answer)
    assert report["messages"] == len(truth)
    documented = re.findall(r"`(\w+)`", command_of_the_program.__doc__ or "")
    assert set(report) <= set(documented)
    assert [comparable(row) for row in rows_of(Format.PARQUET, out)] == truth


def test_failures_are_one_line(session: ClassicSession, tmp_path: Path) -> None:
    path = store("rmq5-clean").copy(tmp_path / "store")
    strict = {"failOnDataLoss": "true"}
    given = options(
        path, Format.PARQUET, tmp_path / "t", columns=("topic", "storeTimestamp"), source=strict
    )
    segment = path / "commitlog" / f"{1 << 20:020d}"
    data = bytearray(segment.read_bytes())
    data[4] ^= 1
    segment.write_bytes(data)
    with pytest.raises(StoreError, match=rf"{segment.name}: \d+ bytes at 0: no record starts here"):
        follow(session, given)
    wrong = options(path, Format.DELTA, tmp_path / "d", source={"subscribe": "A", "assign": "{}"})
    with pytest.raises(Exception, match=r"assign|subscribe"):
        follow(session, wrong)
    (tmp_path / "in-the-way").touch()
    with pytest.raises(DiskError, match="Not a directory"):
        follow(session, options(path, Format.DELTA, tmp_path / "in-the-way"))


@pytest.mark.parametrize("lost", ["all", "some"])
def test_dispatch(session: ClassicSession, tmp_path: Path, lost: str) -> None:
    path, live = tmp_path / "store", tmp_path / "live"
    with BlockingMessageStore.open(live, SMALL) as grown:
        put(grown, 0, 200)
    shutil.copytree(live, path)
    if lost == "all":
        for part in ("consumequeue", "index"):
            shutil.rmtree(path / part)
        (path / "checkpoint").unlink()
    with BlockingMessageStore.open(live, SMALL) as grown:
        put(grown, 200, 500)
    if lost == "some":  # the log has got ahead of its derived files, and who wrote them was killed
        copy_log(live, path)
        (path / "abort").write_text("1")
    wanted = StoreQuery(store=path, checkpoint=tmp_path / "checkpoint", once=True)
    report = dispatch(session, wanted)
    documented = re.findall(r"`(\w+)`", command_of_the_program.__doc__ or "")
    assert set(msgspec.to_builtins(report)) <= set(documented)
    assert report.is_rebuilt == (lost == "all")
    assert verify(path, LocalEngine(2)).ok

    copy_log(live, path)
    with BlockingMessageStore.open(live, SMALL) as grown:
        put(grown, 500, 600)
    stop = threading.Event()
    reports: list[Any] = []
    wanted = StoreQuery(store=path, checkpoint=tmp_path / "checkpoint", processing_time="0 seconds")
    follower = threading.Thread(
        target=lambda: reports.append(dispatch(session, wanted, stop)), daemon=True
    )
    follower.start()
    try:
        wait_for((path / "abort").exists, follower)
        with pytest.raises(StoreError, match="owns this store"):
            BlockingMessageStore.open(path, SMALL)
        copy_log(live, path)
        wait_for(lambda: ranges(path) == ranges(live), follower)
    finally:
        stop.set()
        follower.join()
    assert reports[0].log_end == log_end(live)
    assert verify(path, LocalEngine(2)).ok
    for name in sorted((live / "commitlog").iterdir()):
        assert (path / "commitlog" / name.name).read_bytes() == name.read_bytes()


def log_end(path: Path) -> int:
    with StoreReader.open(path) as reader:
        return reader.max_offset


def ranges(path: Path) -> dict[tuple[str, int], int]:
    """Return the bytes of entries that each queue has, by its files alone."""
    found: dict[tuple[str, int], int] = {}
    for queue in (path / "consumequeue").glob("*/*"):
        data = b"".join(file.read_bytes() for file in sorted(queue.iterdir()))
        found[queue.parent.name, int(queue.name)] = len(data.rstrip(b"\0"))
    return found


def put(live: BlockingMessageStore, start: int, end: int) -> None:
    for number in range(start, end):
        message = Message("A" if number % 3 else "B", b"%d" % number, keys=[f"k{number}"])
        live.put(message)
