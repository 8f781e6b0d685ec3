"""A log directory written by real Apache Kafka, with what Kafka itself read from it.

`README.md` says how it was made and what each file holds. It is unpacked once into
`build/golden-kafka/`, which all tests share: a test that changes a file takes a copy
(`GoldenPartition.copy`).
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.unpacking import unpack

DATA = Path(__file__).parent
BUILD = Path(__file__).parents[2] / "build" / "golden-kafka"

DEFAULT_INDEX_INTERVAL = 4096

_ARCHIVES = ("segments", "truth", "recovery", "legacy")

# Partitions of format versions 0 and 1, in `legacy`.
LEGACY = ("v0-0", "v1-0", "v1-append-0", "v0-v1-v2-0")
LEGACY_INDEX_INTERVAL = 1024

# Values longer than this many base64 characters are kept as a length and a hash.
_SHORT_VALUE = 2000


@cache
def root() -> Path:
    """Return the unpacked data: `logs`, `truth`, `recovered`, `corrupt`, `legacy`."""
    place = BUILD / _fingerprint()
    if not place.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with (BUILD / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                _unpack(place)
    return place


def log_directory() -> Path:
    """Return Kafka's `log.dir`, after a clean shutdown."""
    return root() / "logs"


def partitions(*, consumed: bool = False) -> list[str]:
    """Return the names of the partitions that truth is known of, without unpacking.

    `consumed` leaves out Kafka's own topics (`__…`), which no consumer was asked about.
    """
    names = (DATA / "partitions.txt").read_text().split()
    return [name for name in names if not (consumed and name.startswith("__"))]


def corrupt_cases() -> list[dict[str, Any]]:
    """Return the edits of single logs, and what Kafka's recovery made of each."""
    return json_lines(root() / "corrupt" / "cases.jsonl")


def legacy(name: str) -> Path:
    """Return the directory of a partition of LEGACY; do not write there."""
    return root() / "legacy" / name


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the values of a file of JSON lines."""
    # Header names may hold characters at which `splitlines` would split.
    return [json.loads(line) for line in path.read_text().split("\n") if line]


@dataclass(frozen=True)
class GoldenPartition:
    """One partition; do not write below `path`."""

    name: str

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.name.rsplit("-", 1)[0]

    @property
    def path(self) -> Path:
        """The partition's directory."""
        return log_directory() / self.name

    @property
    def logs(self) -> list[Path]:
        """The `.log` files, in order."""
        return sorted(self.path.glob("*.log"))

    @property
    def index_interval(self) -> int:
        """`index.interval.bytes` of the topic."""
        return int(self.settings().get("index.interval.bytes", DEFAULT_INDEX_INTERVAL))

    def settings(self) -> dict[str, str]:
        """Return the topic's own settings."""
        topics = json.loads((root() / "truth" / "topics.json").read_text())
        return topics.get(self.topic, {}).get("configs", {})

    def recovered(self) -> Path:
        """Return the directory of the index files that Kafka's own recovery wrote."""
        return root() / "recovered" / self.name

    def truth(self, name: str) -> Any:
        """Return a JSON file of what Kafka read, such as `batches.json`."""
        return json.loads((root() / "truth" / self.name / name).read_text())

    def records(self) -> list[dict[str, Any]]:
        """Return one dict a record that Kafka's consumer saw; see `short` for long values."""
        return json_lines(root() / "truth" / self.name / "records.jsonl")

    def copy(self, to: Path) -> Path:
        """Copy the partition to a directory that must not exist; return it."""
        return Path(shutil.copytree(self.path, to))


def short(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record's JSON as `GoldenPartition.records` has it: a long value by its hash."""
    value = record["value"]
    if value is None or len(value) <= _SHORT_VALUE:
        return record
    data = base64.b64decode(value)
    return record | {
        "value": {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()},
    }


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for name in _ARCHIVES:
        digest.update((DATA / f"{name}.tar.xz").read_bytes())
    return digest.hexdigest()[:16]


def _unpack(place: Path) -> None:
    scratch = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    for name in _ARCHIVES:
        unpack(DATA / f"{name}.tar.xz", scratch)
    scratch.rename(place)
