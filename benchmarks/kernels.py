"""Measure the dispatch kernels on one thread: `python benchmarks/kernels.py [--record-size N]`.

Makes a commit log in a temporary directory (it stays in the page cache), and prints the best of
some runs of each step: reading alone, reading and walking, … up to the whole dispatch.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.derived.index_entries import IndexFileBuilder, lookup_many
from mqlake.dispatch.derived.queue_entries import group
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.dispatch.window import DEFAULT_WINDOW
from mqlake.formats import record
from mqlake.storage.local import LocalDirectory

TOPICS, QUEUES, TAGS = 4, 8, 5
DIGITS = 10
MILLISECONDS = 1_700_000_000_000


def make_log(path: Path, size: int, record_size: int) -> int:
    """Write `size` bytes of records of `record_size` bytes each; return how many there are."""
    count = size // record_size
    templates = [_template(number, record_size) for number in range(TOPICS * QUEUES)]
    with path.open("wb") as file:
        for first in range(0, count, 1 << 16):
            numbers = np.arange(first, min(count, first + (1 << 16)))
            file.write(_records(templates, numbers, record_size).tobytes())
    return count


def _template(number: int, record_size: int) -> npt.NDArray[np.uint8]:
    def encode(body: bytes) -> bytes:
        return record.encode(
            topic=f"BenchmarkTopic{number % TOPICS}",
            queue_id=number // TOPICS,
            queue_offset=0,
            physical_offset=0,
            sys_flag=0,
            flag=0,
            born_timestamp=MILLISECONDS,
            born_host="127.0.0.1:50000",
            store_timestamp=MILLISECONDS,
            store_host="127.0.0.1:10911",
            reconsume_times=0,
            prepared_transaction_offset=0,
            properties={
                "KEYS": "order-" + "0" * DIGITS,
                "UNIQ_KEY": "7F0000010A2B18B4AAC2" + "00" + "0" * DIGITS,
                "CLUSTER": "DefaultCluster",
                "TAGS": f"Tag{number % TAGS}",
                "WAIT": "true",
            },
            body=body,
        )

    length = max(0, record_size - len(encode(b"")))
    body = np.random.default_rng(number).integers(0, 256, length, np.uint8).tobytes()
    return np.frombuffer(encode(body), np.uint8)


def _records(
    templates: list[npt.NDArray[np.uint8]], numbers: npt.NDArray[np.int64], record_size: int
) -> npt.NDArray[np.uint8]:
    rows = np.stack(templates)[numbers % len(templates)]
    if rows.shape[1] != record_size:
        raise SystemExit(f"records of {record_size} bytes are too small; try {rows.shape[1]}")
    for at, values in (
        (record.QUEUE_OFFSET_AT, numbers // len(templates)),
        (record.PHYSICAL_OFFSET_AT, numbers * record_size),
    ):
        rows[:, at : at + 8] = values.astype(">i8")[:, None].view(np.uint8)
    digits = (numbers[:, None] // 10 ** np.arange(DIGITS - 1, -1, -1) % 10 + ord("0")).astype("u1")
    for name in (b"KEYS\x01order-", b"UNIQ_KEY\x017F0000010A2B18B4AAC200"):
        at = templates[0].tobytes().find(name) + len(name)
        rows[:, at : at + DIGITS] = digits
    return rows


def best(runs: int, step: Callable[[], object]) -> float:
    """Return the seconds of the fastest run."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record-size", type=int, nargs="*", default=[1024, 256])
    parser.add_argument("--log-size", type=int, default=512 << 20)
    parser.add_argument("--window", type=int, nargs="*", default=[DEFAULT_WINDOW])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    for record_size in arguments.record_size:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "log"
            count = make_log(path, arguments.log_size, record_size)
            for window in arguments.window:
                print(f"\n{count:,} records of {record_size} bytes, windows of {window >> 10} KiB")
                measure_scan(path, count, window, arguments.runs)
            measure_index(path, arguments.runs)


def measure_scan(path: Path, count: int, window: int, runs: int) -> None:
    """Print the rates of a scan that does more and more."""
    file = LocalDirectory(path.parent).open(path.name)

    def scan(want: Want, *, crc: bool, queues: bool = False) -> None:
        steps = SegmentScan(file, 0, 0, file.size, exact=True, crc=crc, want=want, window=window)
        found = 0
        for batch in steps:
            found += len(batch.records)
            if queues:
                group(batch)
        if found != count or steps.gaps:
            raise SystemExit(f"found {found} of {count} records, and gaps {steps.gaps[:3]}")

    def read() -> None:
        buffer = memoryview(bytearray(window))
        for at in range(0, file.size, window):
            file.read_into(buffer, at)

    show("read", count, file.size, best(runs, read))
    for title, want, crc, queues in (
        ("+ walk", Want.LOCATE, False, False),
        ("+ walk, CRC", Want.LOCATE, True, False),
        ("+ properties, queues, tags", Want.EXPORT, True, False),
        ("+ key hashes", Want.DISPATCH, True, False),
        ("+ queue entries: all", Want.DISPATCH, True, True),
    ):
        show(title, count, file.size, best(runs, lambda: scan(want, crc=crc, queues=queues)))  # noqa: B023
    file.close()


def measure_index(path: Path, runs: int) -> None:
    """Print the rates of inserting into an index file, and of looking keys up in it."""
    file = LocalDirectory(path.parent).open(path.name)
    parts: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    for batch in SegmentScan(file, 0, 0, file.size, exact=True, crc=False):
        rows = batch.keys["record"]
        offsets, times = batch.records["physical_offset"], batch.records["store_timestamp"]
        parts.append((batch.keys["hash"].copy(), offsets[rows], times[rows]))
    builder = IndexFileBuilder()

    def insert() -> None:
        builder.header = builder.header._replace(index_count=1)
        for part in parts:
            builder.insert(*part)

    insert()
    inserted = builder.header.index_count - 1
    show("index: insert, warm", inserted, 20 * inserted, best(runs, insert))
    hashes = np.random.default_rng(1).choice(np.concatenate([part[0] for part in parts]), 10_000)
    view, end = builder.finish(), 2 * MILLISECONDS
    seconds = best(
        runs,
        lambda: lookup_many(view, builder.slots, builder.max_entries, hashes, 0, end, 64),
    )
    show("index: look up 10,000 keys", len(hashes), 0, seconds)
    file.close()


def show(title: str, count: int, size: int, seconds: float) -> None:
    """Print one line: rate in millions a second, and in bytes."""
    rate, gigabytes = count / seconds / 1e6, size / seconds / 1e9
    print(f"  {title:28} {seconds * 1e3:8.1f} ms {rate:8.2f} M/s {gigabytes:6.2f} GB/s")


if __name__ == "__main__":
    main()
