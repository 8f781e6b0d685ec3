"""Partitions with bytes changed: nothing but MqlakeError may come of reading or recovering them.

`tests/hostile` has as many read as asked for.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.formats.damage import Damage
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.verify.partition import verify_partition
from mqlake.kafka.write.owned_partition import OwnedPartition
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryDirectory
from tests import golden_kafka
from tests.formats.kafka.mutations import mutate
from tests.golden_kafka import GoldenPartition

# What a changed partition may decompress to, so that a run does not take long.
LIMIT = 1 << 20
RECOVERED = 8

_SMALL = LogSettings(segment_index_bytes=1 << 16)


def samples(largest: int = 12 << 10) -> list[dict[str, bytes]]:
    """Return the beginnings of golden partitions, by file name."""
    found = [_beginning(GoldenPartition(name).path, largest) for name in golden_kafka.partitions()]
    found += [_beginning(golden_kafka.legacy(name), largest) for name in golden_kafka.LEGACY]
    return found


def _beginning(path: Path, largest: int) -> dict[str, bytes]:
    names = [file for file in sorted(path.iterdir()) if file.suffix != ".json"][:12]
    return {file.name: file.read_bytes()[:largest] for file in names}


def change(files: dict[str, bytes], source: random.Random) -> dict[str, bytes]:
    """Return the files with one or two of them changed, or missing."""
    out = dict(files)
    for _ in range(source.randint(1, 2)):
        name = source.choice([*out, *[name for name in out if name.endswith(".log")] * 3])
        if source.randrange(20):
            out[name] = mutate(out[name], source)
        elif len(out) > 1:
            del out[name]
    return out


def read(files: dict[str, bytes], source: random.Random) -> int:
    """Read a partition in all ways; return the records seen."""
    damage: list[Damage] = []
    seen = 0
    recovery_point = source.choice([None, 0, 50])
    directory = MemoryDirectory({f"p/{name}": data for name, data in files.items()})
    with contextlib.suppress(MqlakeError):
        partition = Partition(directory, "p", recovery_point=recovery_point)
        for segment in partition.segments:
            segment.log.limit = LIMIT
        for isolation in Isolation:
            with contextlib.suppress(MqlakeError):
                for _ in partition.records(isolation=isolation, on_damage=damage.append):
                    seen += 1
        for time in (0, 1_700_000_000_500, 1 << 62):
            with contextlib.suppress(MqlakeError):
                partition.offset_for_time(time)
        with contextlib.suppress(MqlakeError):
            verify_partition(partition, deep=True)
    for one in damage:
        assert 0 <= one.offset < one.offset + one.length <= len(files[one.file.split("/")[-1]])
    return seen


def recover(files: dict[str, bytes], path: Path) -> None:
    """Recover a partition; what is left is whole."""
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
    try:
        partition = OwnedPartition(path, _SMALL, is_clean=False)
    except MqlakeError:
        return
    for segment in partition.segments:
        segment.close()
    with Partition(LocalDirectory(path)) as reader:
        wrong = [damage for damage in verify_partition(reader).damage if ".log" in damage.file]
        # Kafka's recovery does not look at the order of offsets, nor at counts.
        assert [
            damage
            for damage in wrong
            if not damage.reason.startswith(("begins", "says", "unknown compression", "ends at"))
        ] == []
