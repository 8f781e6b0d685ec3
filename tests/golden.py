"""Store directories written by real Apache RocketMQ, with what RocketMQ itself read from them.

`tests/golden_stores/README.md` says how they were made and what each file holds. A store is
unpacked once into `build/golden/`; it is shared by all tests, so a test that changes one takes a
copy (`GoldenStore.copy`). The torn stores are the killed one with the recorded bytes changed.
"""

from __future__ import annotations

import fcntl
import json
import lzma
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unpacking import unpack

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "golden_stores"
EXAMPLE = ROOT / "examples" / "rocketmq-5.5-store.tar.xz"
BUILD = ROOT / "build" / "golden"

CLEAN = ("rmq5-clean", "rmq533-clean", "rmq49-clean", "rmq5-default")
CRASHED = ("rmq5-killed", "rmq5-torn")
NAMES = CLEAN + CRASHED
TORN_VARIANTS = ("rmq5-torn", "rmq5-torn.variant-flip5", "rmq5-torn.variant-magic")

SEGMENT_SIZE = 1 << 20


@dataclass(frozen=True)
class GoldenStore:
    """One store directory; do not write below `path`."""

    name: str
    path: Path

    def messages(self) -> list[dict[str, Any]]:
        """Return one dict a commit-log record, in physical order, as Java decoded it."""
        path = DATA / f"{self.name}.messages.jsonl.xz"
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def queries(self) -> dict[str, Any]:
        """Return the answers of RocketMQ's own DefaultMessageStore."""
        return _json(f"{self.name}.queries.json.xz")

    def files(self) -> list[dict[str, Any]]:
        """Return path, size and sha256 of every file of the store."""
        return _json(f"{self.name}.files.json.xz")

    def walk(self) -> dict[str, Any]:
        """Return where RocketMQ's walk over the log ends, and the blank records."""
        return _json(f"{self.name}.walk.json")

    def recovery(self) -> dict[str, Any]:
        """Return what RocketMQ's own start on this store did (killed, torn, and `rmq5-rebuild`)."""
        return _json(f"{self.name}.recovery.json.xz")

    def copy(self, to: Path) -> Path:
        """Copy the store, keeping holes, to a directory that must not exist; return it."""
        subprocess.run(["cp", "-a", "--sparse=always", str(self.path), str(to)], check=True)
        return to


def store(name: str) -> GoldenStore:
    """Return a golden store by name: one of NAMES or TORN_VARIANTS."""
    path = BUILD / name
    if not path.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with (BUILD / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _unpack(name)
    return GoldenStore(name, path)


def recovery(name: str) -> dict[str, Any]:
    """Return a recorded recovery that has no store of its own, such as `rmq5-rebuild`."""
    return _json(f"{name}.recovery.json.xz")


def _json(name: str) -> Any:
    path = DATA / name
    raw = lzma.decompress(path.read_bytes()) if name.endswith(".xz") else path.read_bytes()
    return json.loads(raw)


def _unpack(name: str) -> None:
    source = "rmq5-killed" if name in TORN_VARIANTS else name
    scratch = BUILD / f".{name}"
    shutil.rmtree(scratch, ignore_errors=True)
    packed = EXAMPLE if source == "rmq5-clean" else DATA / f"{source}.tar.xz"
    unpack(packed, scratch)
    if name in TORN_VARIANTS:
        _tear(scratch / source, _json(f"{name}.how.json"))
    (scratch / source).rename(BUILD / name)
    scratch.rmdir()


def _tear(path: Path, how: dict[str, Any]) -> None:
    if "flippedAt" in how:
        _change(path, how["flippedAt"], lambda byte: bytes([byte[0] ^ 0x40]))
    if "zeroedAt" in how:
        _change(path, how["zeroedAt"], lambda old: bytes(len(old)), how["zeroedLen"])
    if how["variant"] == "magic":
        _change(path, how["lastRecord"] + 4, lambda byte: bytes([byte[0] ^ 1]))


def _change(path: Path, at: int, change: Any, length: int = 1) -> None:
    segment = at // SEGMENT_SIZE * SEGMENT_SIZE
    with (path / "commitlog" / f"{segment:020d}").open("r+b") as file:
        file.seek(at - segment)
        old = file.read(length)
        file.seek(at - segment)
        file.write(change(old))
