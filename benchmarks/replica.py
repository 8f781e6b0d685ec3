"""Replicas: how fast one catches up, how far behind it is, how soon a row is there."""

# pyright: basic
# Reason: PySpark carries no types.

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, interleave, mqlake, remove, say, seconds
from benchmarks.broker.sides import MqlakeBroker, Side, cpu_seconds, environment, java
from benchmarks.memory_state import stored
from benchmarks.results import Bar, Section, Series
from mqlake.client import Message, MessageQueue, Producer
from mqlake.lake.options import FollowOptions, Format
from mqlake.programs.ports import free_port
from mqlake.replica.background import ReplicaThread
from mqlake.replica.options import ReplicaOptions
from mqlake.replica.replica import Replica
from mqlake.spark.follow.job import follow
from mqlake.spark.session import Session, open_session

TOPIC = "Orders"
SEGMENTS = 2
RECORD = 1 << 10
RATE, BATCH, SENDING = 20_000, 100, 8.0
WANTED_RATE, WANTED_LAG, WANTED_ROW = 500e6, 0.05, 1.0

METHOD = """\
Catching up: a new replica of a master of mqlake's, a process of its own, over loopback, until it
has all of {size} GiB of records of 1 KiB, which are checked, appended and dispatched. Plain write:
a program only writes as many bytes to as many files, 1 MiB a call, as a replica does: it is what
this machine's memory and file system allow. Lag: the median over some seconds of the time from a
message's store time at the master to its arrival at the replica, while {rate:,} messages a second
of 1 KiB are sent in batches; master, replica and sender are processes of their own. Row: from the
acknowledgement of a message by RocketMQ's broker to the answer of a union read, asked for again and
again, that has it, in a warm Spark of two threads. The first round is dropped."""


def measure(bench: Bench) -> Section:
    """Measure all three; the last one beside RocketMQ, where it is there."""
    caught, written = _catching_up(bench)
    run = partial(_lag, bench)
    writes = 2 * stored(RATE * SENDING, RECORD)
    answers = interleave({"lag": run}, dropped=1, repetitions=bench.repetitions, writes=writes)
    lag = Series("lag", "s", seconds(answers["lag"]))
    size = caught.work["bytes"]
    bars = [
        Bar("catching up", "≥", WANTED_RATE / 1e6, size / caught.median / 1e6, "MB/s"),
        Bar(f"lag at {RATE:,} messages a second", "<", WANTED_LAG, lag.median, "s"),
    ]
    series = [caught, written, lag]
    if "java" in bench.engines:
        row = Series("put at RocketMQ to row", "s", _rows(bench))
        bars.append(Bar(row.name, "<", WANTED_ROW, row.median, "s"))
        series.append(row)
    method = METHOD.format(size=round(size / (1 << 30), 2), rate=RATE)
    return Section("replica", "Replicas", method, series, bars)


def _catching_up(bench: Bench) -> tuple[Series, Series]:
    """Return what a replica needs to catch up, and what writing as many bytes takes."""
    store = bench.store(RECORD, SEGMENTS)
    home = bench.directory / "replica-master"
    home.mkdir()
    shutil.copytree(store.path / "commitlog", home / "store" / "commitlog")
    master = _master(home, mappedFileSizeCommitLog=str(bench.size))
    copy = bench.directory / "replica-copy"
    try:
        answers = interleave(
            {
                "catching up": partial(_catch_up, copy, master),
                "plain write": partial(_write, copy, bench.size),
            },
            dropped=1,
            repetitions=bench.repetitions,
            writes=SEGMENTS * bench.size,
        )
    finally:
        master.stop()
        remove(home)
    size = {"bytes": answers["catching up"][0]["bytes"]}
    caught, written = (Series(name, "s", seconds(found), size) for name, found in answers.items())
    return caught, written


def _write(directory: Path, size: int) -> dict[str, Any]:
    """Write as many bytes as a copy of the log has."""
    piece, begin = bytes(1 << 20), time.perf_counter()
    directory.mkdir()
    try:
        for number in range(SEGMENTS):
            with (directory / str(number)).open("wb", buffering=0) as file:
                for _ in range(size // len(piece)):
                    file.write(piece)
        return {"seconds": time.perf_counter() - begin}
    finally:
        remove(directory)


def _master(home: Path, **settings: str) -> MqlakeBroker:
    return MqlakeBroker(home, haListenPort=str(free_port()), **settings)


def _catch_up(copy: Path, master: Side) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        options = ReplicaOptions(master=master.broker, store=copy, is_patient=False)
        cpu, begin = cpu_seconds(os.getpid()), time.perf_counter()
        async with Replica(options) as replica:
            caught = asyncio.ensure_future(replica.caught_up.wait())
            await asyncio.wait([caught, replica.failed], return_when="FIRST_COMPLETED")
            if replica.failed.done():
                raise replica.failed.result()
            taken, received = time.perf_counter() - begin, replica.status().received
            say(f"    {cpu_seconds(os.getpid()) - cpu:.2f} s of processor time")
        return {"seconds": taken, "bytes": received}

    try:
        return asyncio.run(run())
    finally:
        remove(copy)


def _lag(bench: Bench) -> dict[str, Any]:
    home, copy = bench.directory / "lag-master", bench.directory / "lag-copy"
    master = _master(home)
    words = ["replica", master.broker, "--store", str(copy), "--json", "--every", "0.5"]
    lines = bench.directory / "lag.json"
    try:
        with lines.open("wb") as output:
            replica = subprocess.Popen(
                [mqlake(), *words], stdout=output, stderr=subprocess.DEVNULL, env=environment(home)
            )
        try:
            asyncio.run(_send(master.names))
        finally:
            replica.terminate()
            replica.wait()
    finally:
        master.stop()
        remove(home)
        remove(copy)
    found = [json.loads(line) for line in lines.read_bytes().splitlines()]
    busy = [each for each in found if each["bytesPerSecond"] > 0 and each["lagMs"] is not None]
    rate = statistics.median(each["bytesPerSecond"] for each in busy) / RECORD
    say(f"    {rate:,.0f} messages a second arrived")
    return {"seconds": statistics.median(each["lagMs"] for each in busy) / 1000}


async def _send(names: str) -> None:
    """Send batches at a steady rate for some seconds."""
    body = os.urandom(RECORD)
    async with Producer(names) as producer:
        await producer.send(Message(topic=TOPIC, body=body))
        begin, sent, waiting = time.perf_counter(), 0, set[asyncio.Task[Any]]()
        while (now := time.perf_counter() - begin) < SENDING:
            if sent >= now * RATE:
                await asyncio.sleep(0.001)
                continue
            batch = [Message(topic=TOPIC, body=body) for _ in range(BATCH)]
            task = asyncio.create_task(producer.send_batch(batch))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            sent += BATCH
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)


def _rows(bench: Bench) -> list[float]:
    home, copy = bench.directory / "row-master", bench.directory / "row-copy"
    master = java(home)
    try:
        with _spark() as session:
            return asyncio.run(_measure_rows(bench, master, copy, session))
    finally:
        master.stop()
        remove(home)
        remove(copy)


async def _measure_rows(bench: Bench, master: Side, copy: Path, session: Session) -> list[float]:
    table, stop = bench.directory / "row-table", threading.Event()
    options = ReplicaOptions(master=master.broker, store=copy)
    async with Producer(master.names) as producer:
        first = await producer.send(Message(topic=TOPIC, body=b"first"))
        queue: MessageQueue = first.queue
        with ReplicaThread({options: lambda: 1 << 62}, stop) as running:
            while not (copy / "config" / "broker.properties").is_file():
                running.check()
                await asyncio.sleep(0.1)
            query = FollowOptions(
                store=copy,
                checkpoint=table / "checkpoint",
                format=Format.DELTA,
                out=table,
                once=True,
            )
            follow(session, query)
            taken: list[float] = []
            for _ in range(bench.repetitions + 1):
                sent = await producer.send(Message(topic=TOPIC, body=b"x" * RECORD), queue=queue)
                begin = time.perf_counter()
                while _newest(session.spark, copy, table, queue.queue_id) < sent.queue_offset:
                    running.check()
                taken.append(time.perf_counter() - begin)
                say(f"  a row after {taken[-1]:.3f} s")
    remove(table)
    return taken[1:]


def _newest(spark: Any, copy: Path, table: Path, queue_id: int) -> int:
    frame = (
        spark.read.format("rocketmq")
        .options(path=str(copy), table=str(table), subscribe=TOPIC)
        .option("columns", "topic,queueId,queueOffset")
        .load()
        .where(f"queueId = {queue_id}")
    )
    ((found,),) = frame.selectExpr("max(queueOffset)").collect()
    return -1 if found is None else found


@contextmanager
def _spark() -> Iterator[Session]:
    with open_session("local[2]") as session:
        yield session
