"""Run the benchmarks: `python -m benchmarks [NAME…]`; `make bench` runs all. At full size beside
Java, what was measured goes onto the page."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks import (
    archive_lookup,
    arrow_table,
    celery,
    follow_memory,
    java,
    kafka,
    kafka_source,
    key_lookup,
    live_store,
    memory,
    rebuild,
    replica,
    replication,
    spark_source,
    startup,
    union_read,
    verify,
)
from benchmarks.bench import Bench, say
from benchmarks.broker import pipelined, start, stock_clients
from benchmarks.client import beside_grpc, consuming, idle, producing
from benchmarks.derived import DifferenceError
from benchmarks.machine import machine, versions
from benchmarks.page import page
from benchmarks.peer import PeerError
from benchmarks.publishing import publish
from benchmarks.results import Results, Section

MEASURES = {
    "rebuild": rebuild.measure,
    "verify": verify.measure,
    "key_lookup": key_lookup.measure,
    "startup": startup.measure,
    "memory": memory.measure,
    "follow_memory": follow_memory.measure,
    "kafka_recover": kafka.measure_recovery,
    "kafka_cold_start": kafka.measure_cold_start,
    "kafka_verify": kafka.measure_verification,
    "kafka_source": kafka_source.measure,
    "spark_source": spark_source.measure,
    "spark_lookup": spark_source.measure_lookup,
    "arrow_table": arrow_table.measure,
    "union_read": union_read.measure,
    "archive_lookup": archive_lookup.measure,
    "replica": replica.measure,
    "replication": replication.measure,
    **live_store.MEASURES,
    "broker_clients": stock_clients.measure,
    "broker_sends": pipelined.measure,
    "broker_start": start.measure,
    "client_producer": producing.measure,
    "client_consumer": consuming.measure,
    "client_idle": idle.measure,
    "client_grpc": beside_grpc.measure,
    "celery": celery.measure,
}
NEED_JAVA = {
    "broker_clients",
    "broker_start",
    "client_consumer",
    "client_grpc",
    "client_producer",
    "key_lookup",
    "kafka_recover",
    "kafka_cold_start",
    "kafka_source",
    "replication",
    "spark_source",
    *live_store.MEASURES,
}
FULL_SIZE = 1 << 30
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def main() -> int:
    """Measure what was asked for; publish it if it was at full size and beside Java."""
    options = _options()
    engines = [name for name in ("java", "local", "spark") if name not in options.without]
    if "java" in engines:
        try:
            java.build()
        except java.JavaMissingError as reason:
            say(f"without Java, so the page stays as it is: {reason}")
            engines.remove("java")
    skipped = _skipped(options.names)
    begun = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    state = machine()
    with tempfile.TemporaryDirectory(prefix="mqlake-bench-", dir=options.directory) as directory:
        bench = Bench(Path(directory), options.size, options.repetitions, tuple(engines))
        try:
            names = [
                name
                for name in options.names or MEASURES
                if (name not in NEED_JAVA or "java" in engines) and name not in skipped
            ]
            sections, failed = _measured(bench, names, begun)
            known = versions() | (_java_versions(bench) if "java" in engines else {})
        finally:
            bench.close()
    told = {"segment size": f"{options.size >> 20} MiB", "repetitions": str(options.repetitions)}
    results = Results(begun, state, known, told, sections)
    print(page(results))
    if not options.without and options.size == FULL_SIZE and "java" in engines:
        publish(results)
    if failed:
        say(f"failed, and not on the page: {', '.join(failed)}")
    return int(bool(failed))


def _skipped(names: Sequence[str]) -> set[str]:
    """Return what cannot be measured on this machine."""
    skipped: set[str] = set()
    for name, missing in (("celery", celery.missing), ("archive_lookup", archive_lookup.missing)):
        if (not names or name in names) and (lacks := missing()) is not None:
            say(f"without the benchmark {name}: {lacks}")
            skipped.add(name)
    return skipped


def _measured(bench: Bench, names: Sequence[str], begun: str) -> tuple[list[Section], list[str]]:
    """Return sections of the page, and which benchmarks failed: the others count all the same."""
    sections: list[Section] = []
    failed: list[str] = []
    for name in names:
        say(f"== {name}")
        try:
            sections.append(msgspec.structs.replace(MEASURES[name](bench), begun=begun))
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            failed.append(name)
    return sections, failed


def _java_versions(bench: Bench) -> dict[str, str]:
    jvm = bench.peer("java").ask("version")["java"]
    return {"RocketMQ": java.rocketmq_version(), "Java": jvm}


def _size(text: str) -> int:
    for unit, factor in UNITS.items():
        if text.endswith(unit) and text.removesuffix(unit).isdigit():
            return int(text.removesuffix(unit)) * factor
    raise argparse.ArgumentTypeError(f"not a size such as 64MiB: {text}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASURES)}")
    parser.add_argument("--size", type=_size, default=FULL_SIZE, help="of a commit-log file")
    parser.add_argument("--repetitions", type=int, default=5, help="that count, of each")
    parser.add_argument("--without", action="append", default=[], choices=["java", "spark"])
    parser.add_argument("--directory", type=Path, help="for temporary files, 5 GiB")
    options = parser.parse_args()
    for name in options.names:
        if name not in MEASURES:
            parser.error(f"no benchmark called {name}: choose from {', '.join(MEASURES)}")
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (PeerError, DifferenceError) as failure:
        sys.exit(f"benchmarks: {failure}")
