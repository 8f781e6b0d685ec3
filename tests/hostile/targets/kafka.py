"""Kafka's logs: batches, stretches of log, whole partitions, and decompression bombs."""

from __future__ import annotations

import functools
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.damage import Damage
from mqlake.formats.kafka import versions
from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.file_name import Kind, file_name
from mqlake.formats.kafka.record_batch import NewRecord, encode
from mqlake.kafka.batches.walk import BatchWalk
from mqlake.kafka.log.partition import Partition
from mqlake.storage.memory import MemoryDirectory, MemoryFile
from tests.formats.kafka import mutations as batch_mutations
from tests.formats.kafka.mutations import mutate, with_good_check_sum
from tests.hostile.cases import Case, Target, require, same
from tests.kafka import mutations as partition_mutations

BATCHES = 50
"""Inputs of a case, so that what a case costs by itself does not count."""

WINDOWS = (64, 700, 1 << 15)
BOMB = 48 << 20
LIMIT = 1 << 20
LOG = f"p/{file_name(0, Kind.LOG)}"


@functools.cache
def samples() -> list[bytes]:
    """Return real batches of every codec and version."""
    return batch_mutations.samples()


@functools.cache
def partitions() -> list[dict[str, bytes]]:
    """Return the files of real partitions, cut to their beginnings."""
    return partition_mutations.samples()


@functools.cache
def load_kernels() -> None:
    """Load the kernels in the first case of a process, whose memory is not looked at."""
    from mqlake.kafka import warm_up

    warm_up.load()


def changed(case: Case) -> bytes:
    """Return a mutated batch, every other one with the check sum of its bytes."""
    data = mutate(case.dice.choice(samples()), case.dice)
    return with_good_check_sum(data) if case.chance(0.5) else data


def batches(case: Case) -> None:
    """Read mutated batches, and now and then the same bytes as each of the small files."""
    for number in range(BATCHES):
        data = changed(case)
        case.feed(len(data))
        case.seen["records"] += batch_mutations.read_all(data)
        if number % 16 == 0:
            batch_mutations.read_side_files(data)


def scans(case: Case) -> None:
    """Walk a log of mutated batches, compiled and in plain Python; then read its records."""
    from mqlake.kafka.batches.scan import BatchScan, each

    parts = [changed(case) if case.chance(0.5) else case.dice.choice(samples()) for _ in range(6)]
    data = b"".join(parts)
    case.feed(len(data), inputs=len(parts))
    for check in (True, False):
        walk = BatchWalk(MemoryFile(data), check=check)
        scan = BatchScan(MemoryFile(data), check=check, window=case.dice.choice(WINDOWS))
        expected = list(walk)
        found = [batch for some in scan for batch in each(some.rows)]
        same(found, expected, "batches")
        same((scan.position, scan.fault), (walk.position, walk.fault), "ends")
        case.seen["batches"] += len(found)
    _read(case, data)


def _read(case: Case, data: bytes) -> None:
    from mqlake.kafka.records.scan import RecordScan

    def outcome(read: Callable[[Partition, list[Damage]], Iterator[tuple[int, int]]]) -> object:
        damage: list[Damage] = []
        found: list[tuple[int, int]] = []
        try:
            partition = Partition(MemoryDirectory({LOG: data}), "p")
            for segment in partition.segments:
                segment.log.limit = LIMIT
            found.extend(read(partition, damage))
        except MqlakeError as error:
            return str(error)
        case.seen["records"] += len(found)
        return found, damage

    def values(partition: Partition, damage: list[Damage]) -> Iterator[tuple[int, int]]:
        for record in partition.records(on_damage=damage.append):
            yield record.offset, record.timestamp

    def columns(partition: Partition, damage: list[Damage]) -> Iterator[tuple[int, int]]:
        for records in RecordScan(partition, on_damage=damage.append):
            rows = records.rows
            yield from zip(rows["offset"].tolist(), rows["timestamp"].tolist(), strict=True)

    same(outcome(columns), outcome(values), "records")


def whole_partitions(case: Case) -> None:
    """Read, search, verify and recover a partition with mutated files."""
    load_kernels()
    files = partition_mutations.change(case.dice.choice(partitions()), case.dice)
    case.feed(sum(map(len, files.values())))
    os.environ["MQLAKE_KERNEL"] = case.dice.choice(("compiled", "reference"))
    try:
        case.seen["records"] += partition_mutations.read(files, case.dice)
        if case.chance(1 / partition_mutations.RECOVERED):
            with tempfile.TemporaryDirectory() as scratch:
                partition_mutations.recover(files, Path(scratch) / "p")
            case.seen["recovered"] += 1
    finally:
        del os.environ["MQLAKE_KERNEL"]


@functools.cache
def bombs() -> list[bytes]:
    """Return batches that grow to 48 MiB, of each codec, one in another's record."""
    zeros = NewRecord(0, None, bytes(BOMB))
    found = [
        encode(0, [zeros], compression=codec)
        for codec in Compression
        if codec is not Compression.NONE
    ]
    return [*found, encode(0, [NewRecord(0, None, found[-1])] * 50, compression=Compression.ZSTD)]


def exploding(case: Case) -> None:
    """Read batches that grow to many times their size, as they are and mutated."""
    whole = case.dice.choice(bombs()[:-1])
    case.feed(len(whole))
    batch = versions.read_header(whole, 0, 0, len(whole))
    require(batch is not None, "a bomb is no batch")
    try:
        versions.decode_records(batch, whole, LIMIT)
    except FormatError as error:
        require("grows beyond" in str(error), f"a bomb was taken for damaged: {error}")
    else:
        require(False, "a bomb was decompressed")
    for bomb in (whole, bombs()[-1]):
        head = bytearray(bomb[:400])
        head = bytearray(mutate(bytes(head), random.Random(case.dice.random())))
        data = with_good_check_sum(bytes(head) + bomb[400:])
        case.feed(len(data))
        batch_mutations.read_all(data)
        _read(case, data)


TARGETS = (
    Target(
        "kafka-batches",
        "Mutated record batches and message sets of Kafka, every other one with a correct "
        "checksum, and Kafka's small files: values or a `FormatError`.",
        batches,
        0.8,
    ),
    Target(
        "kafka-scan",
        "`BatchScan` and `RecordScan` over logs of such batches: the compiled kernels and plain "
        "Python return the same batches, records and damage.",
        scans,
        0.15,
    ),
    Target(
        "kafka-scan-bounds-checked",
        "The same with kernels that check each load and store.",
        scans,
        0.03,
        bounds_checked=True,
    ),
    Target(
        "kafka-partitions",
        "Partitions with mutated, missing and truncated files: read under both isolation levels, "
        "searched by time, verified and recovered; damage is inside its file, and a recovered "
        "partition is valid.",
        whole_partitions,
        0.02,
    ),
    Target(
        "kafka-bombs",
        "Batches of each codec that decompress to 48 MiB, the smallest from 2 KiB, with a limit "
        "of 1 MiB: refused, in bounded memory.",
        exploding,
        0.0005,
    ),
)
