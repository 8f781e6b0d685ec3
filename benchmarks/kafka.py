"""Kafka's log segments: recovery beside Java, warm and from a cold start, and verification."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.peer import kafka_broker
from tests.peer.java_build import build

from benchmarks.bench import Bench, interleave, mqlake, remove, say, seconds
from benchmarks.kafka_log import INTERVAL, Segment, write_segment
from benchmarks.peer import Peer
from benchmarks.results import Bar, Section, Series

SHAPES = {"16 KiB": 15, "1 KiB": 1}
"""Size of a batch, and its records of 1 KiB."""
WANTED_WARM, WANTED_COLD = 1, 5
WANTED_RATE = 1.5

RECOVER_METHOD = """\
One segment of {size} MiB without its index files, in batches of 15 records of 1 KiB (16 KiB is the
producers' default), and in batches of one record; no compression; an index entry every {interval}
bytes. Java: `LogSegment.recover()` of Kafka {kafka}, in a warm JVM. mqlake: the same in a warm
process. Opening and closing the files is not timed. The index files of both are equal, byte for
byte. The first three rounds are dropped."""

COLD_METHOD = """\
Whole processes on the same segments. mqlake: `mqlake kafka recover`, from start to exit, including
syncs. Kafka recovers only when a broker starts: from the start of the process until a client has
the partition's end offset. The remarks compare with a Java program that only calls
`LogSegment.recover()`, from start to exit. The first round is dropped."""

VERIFY_METHOD = """\
`mqlake kafka verify` in a warm process, on the same segments with their index files: checksum and
fields of each batch, and each index entry against its batch. The first round is dropped."""


def measure_recovery(bench: Bench) -> Section:
    """Measure both sides on the same segments, in warm processes."""
    series: list[Series] = []
    bars: list[Bar] = []
    with _clients(bench) as java, _mqlake(bench) as mqlake:
        kafka = java.ask("version")["kafka"]
        for shape, records in SHAPES.items():
            with _segment(bench, records) as segment:
                found: dict[str, dict[str, bytes]] = {}
                runs = {
                    name: partial(_recover, segment, peer, name, found)
                    for name, peer in (("Kafka's LogSegment.recover()", java), ("mqlake", mqlake))
                }
                answers = interleave(
                    runs, dropped=3, repetitions=bench.repetitions, writes=_written(bench)
                )
                assert len({tuple(files.values()) for files in found.values()}) == 1
                work = {"batches": segment.batches, "bytes": segment.size}
                pair = [
                    Series(f"{name}, batches of {shape}", "s", seconds(told), work)
                    for name, told in answers.items()
                ]
            series += pair
            text = f"recovery rate, batches of {shape}, against a warm JVM's"
            bars.append(Bar(text, "≥", WANTED_WARM, pair[0].median / pair[1].median, "x"))
    method = RECOVER_METHOD.format(size=bench.size >> 20, interval=INTERVAL, kafka=kafka)
    return Section("kafka_recover", "Kafka: recovery, warm", method, series, bars)


def measure_cold_start(bench: Bench) -> Section:
    """Measure whole processes."""
    series: list[Series] = []
    bars: list[Bar] = []
    remarks: list[str] = []
    for shape, records in SHAPES.items():
        with _segment(bench, records) as segment, _broker(bench, segment) as broker:
            runs = {
                "a broker's start": broker,
                "a JVM that recovers": _timed(segment, _java_program(segment)),
                "mqlake kafka recover": _timed(segment, _mqlake_program(segment)),
            }
            answers = interleave(
                runs, dropped=1, repetitions=bench.repetitions, writes=_written(bench)
            )
        work = {"bytes": segment.size}
        some = [
            Series(f"{name}, batches of {shape}", "s", seconds(told), work)
            for name, told in answers.items()
        ]
        series += some
        brokers, jvms, mqlakes = (one.median for one in some)
        text = f"recovery from a cold start, batches of {shape}, against a broker's"
        bars.append(Bar(text, "≥", WANTED_COLD, brokers / mqlakes, "x"))
        remarks.append(
            f"Batches of {shape}: {jvms / mqlakes:.2f} x the rate of a JVM that only recovers."
        )
    title = "Kafka: recovery from a cold start"
    return Section("kafka_cold_start", title, COLD_METHOD, series, bars, remarks)


def measure_verification(bench: Bench) -> Section:
    """Measure mqlake alone: Kafka has no such check."""
    series: list[Series] = []
    bars: list[Bar] = []
    with _mqlake(bench) as mqlake:
        for shape, records in SHAPES.items():
            with _segment(bench, records) as segment:
                mqlake.ask("recover", segment.path, INTERVAL)

                def verify(segment: Segment = segment) -> dict[str, Any]:
                    _warm(segment)
                    answer = mqlake.ask("verify", segment.path)
                    assert answer["ok"], "damage where there is none"
                    assert answer["records"] == segment.records
                    return answer

                answers = interleave({"mqlake": verify}, dropped=1, repetitions=bench.repetitions)[
                    "mqlake"
                ]
            work = {"batches": segment.batches, "bytes": segment.size}
            one = Series(f"batches of {shape}", "s", seconds(answers), work)
            series.append(one)
            rate = segment.size / one.median / 1e9
            bars.append(Bar(f"Kafka: verify, batches of {shape}", "≥", WANTED_RATE, rate, "GB/s"))
    return Section("kafka_verify", "Kafka: verify", VERIFY_METHOD, series, bars)


def _written(bench: Bench) -> int:
    """Return about how many bytes of index files a recovery writes."""
    return bench.size // INTERVAL * 32


def _recover(
    segment: Segment, peer: Peer, name: str, found: dict[str, dict[str, bytes]]
) -> dict[str, Any]:
    segment.strip()
    _warm(segment)
    answer = peer.ask("recover", segment.path, INTERVAL)
    assert answer["cut"] == 0, f"{name} cut a whole log"
    found[name] = segment.indexes()
    return answer


def _timed(segment: Segment, command: list[str]) -> Callable[[], dict[str, Any]]:
    def run() -> dict[str, Any]:
        segment.strip()
        _warm(segment)
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {"seconds": time.perf_counter() - begin}

    return run


def _java_program(segment: Segment) -> list[str]:
    program = ["java", "-cp", build(kafka_broker.SOURCE), "Recover"]
    return [*program, str(segment.path), str(INTERVAL)]


def _mqlake_program(segment: Segment) -> list[str]:
    options = ["--index-interval-bytes", str(INTERVAL)]
    return [mqlake(), "kafka", "recover", str(segment.log), *options]


def _warm(segment: Segment) -> None:
    """Bring the log into the page cache."""
    with segment.log.open("rb", buffering=0) as file:
        buffer = bytearray(4 << 20)
        while file.readinto(buffer):
            pass


@contextmanager
def _segment(bench: Bench, records: int) -> Iterator[Segment]:
    path = bench.directory / "kafka" / "benchmark-0"
    remove(path)
    say(f"writing a Kafka segment of {bench.size >> 20} MiB, {records} records a batch")
    segment = write_segment(path, size=bench.size, records=records)
    subprocess.run(["sync", str(segment.log)], check=True)
    try:
        yield segment
    finally:
        remove(path)


@contextmanager
def _clients(bench: Bench) -> Iterator[Peer]:
    peer = kafka_broker.start_clients(bench.directory / "kafka.stderr")
    try:
        yield peer
    finally:
        peer.close()


@contextmanager
def _mqlake(bench: Bench) -> Iterator[Peer]:
    log = bench.directory / "kafka-mqlake.stderr"
    peer = Peer("mqlake", [sys.executable, "-m", "benchmarks.kafka_peer"], log)
    try:
        yield peer
    finally:
        peer.close()


@contextmanager
def _broker(bench: Bench, segment: Segment) -> Iterator[Callable[[], dict[str, Any]]]:
    """Give what times the start of a broker on a log that it has to recover."""
    directory = bench.directory / "kafka-broker"
    remove(directory)
    directory.mkdir()
    broker = kafka_broker.Broker(directory)
    with _clients(bench) as clients:
        try:
            broker.start()
            clients.ask("create", broker.bootstrap, "benchmark", f"segment.bytes={(1 << 31) - 1}")
            broker.stop()
            partition = broker.logs / "benchmark-0"
            for empty in partition.glob(f"{0:020d}.*"):
                empty.unlink()
            (partition / segment.log.name).hardlink_to(segment.log)
            yield lambda: _start(broker, clients, segment)
        finally:
            broker.kill()
    remove(directory)


def _start(broker: kafka_broker.Broker, clients: Peer, segment: Segment) -> dict[str, Any]:
    partition = broker.logs / "benchmark-0"
    for file in partition.glob(f"{0:020d}.*index"):
        file.unlink()
    for file in partition.glob("*.snapshot"):
        file.unlink()
    _warm(segment)
    begin = time.perf_counter()
    broker.start()
    end = clients.ask("end-offset", broker.bootstrap, "benchmark")["endOffset"]
    seconds = time.perf_counter() - begin
    assert end == segment.records, f"the broker's log ends at {end}"
    broker.kill()
    return {"seconds": seconds}
