"""One run of the benchmarks: its temporary directory, its logs, and the processes it measures."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import java
from benchmarks.commit_log import Log, write_commit_log
from benchmarks.memory_state import touch_memory
from benchmarks.peer import Peer

COMMIT_LOG = "commitlog"


@dataclass(frozen=True)
class Store:
    """A store directory of which only the commit log is given."""

    path: Path
    log: Log

    def strip(self) -> None:
        """Remove everything but the commit log."""
        for entry in self.path.iterdir():
            if entry.name != COMMIT_LOG:
                remove(entry)

    def adopt(self, output: Path) -> None:
        """Take the derived files that a rebuild made elsewhere."""
        for entry in list(output.iterdir()):
            shutil.move(entry, self.path / entry.name)
        output.rmdir()

    def warm(self) -> None:
        """Bring the commit log into the page cache, with nothing left to be written back."""
        os.sync()
        for segment in sorted((self.path / COMMIT_LOG).iterdir()):
            with segment.open("rb", buffering=0) as file:
                buffer = bytearray(4 << 20)
                while file.readinto(buffer):
                    pass


@dataclass
class Bench:
    """What the benchmarks of one run share.

    `engines` are the peers to measure, of "java", "local" and "spark"; they start when they are
    first asked for, and stay up, so that they are warm.
    """

    directory: Path
    size: int
    repetitions: int
    engines: tuple[str, ...]
    _peers: dict[str, Peer] = field(default_factory=dict)
    _store: Store | None = None

    def peer(self, name: str) -> Peer:
        """Return the running peer of that name."""
        if name not in self._peers:
            self._peers[name] = self.start(name)
        return self._peers[name]

    def start(self, name: str) -> Peer:
        """Start a peer that the caller closes."""
        log = self.directory / f"{name}.stderr"
        if name == "java":
            return java.start(log)
        if name == "live":
            return Peer(name, [sys.executable, "-m", "benchmarks.live_store.peer"], log)
        return Peer(name, [sys.executable, "-m", "benchmarks.python_peer", name], log)

    def store(self, record_size: int, segments: int = 1) -> Store:
        """Return a store of `segments` times `size` bytes; it goes when another is asked for."""
        path = self.directory / f"store-{record_size}-{segments}"
        if self._store is None or self._store.path != path:
            if self._store is not None:
                remove(self._store.path)
            say(f"writing a commit log of {segments} x {self.size >> 20} MiB")
            log = write_commit_log(
                path / COMMIT_LOG,
                segment_size=self.size,
                segments=segments,
                record_size=record_size,
            )
            self._store = Store(path, log)
        return self._store

    def close(self) -> None:
        """Stop all peers."""
        for peer in self._peers.values():
            peer.close()


Answers = dict[str, list[dict[str, Any]]]


def interleave(
    runs: Mapping[str, Callable[[], dict[str, Any]]],
    *,
    dropped: int,
    repetitions: int,
    writes: int = 0,
) -> Answers:
    """Run A B A B …, so that a change of the machine's mood meets all; drop the first rounds.

    Args:
        writes: about how many bytes of files a round writes, on all sides together: so much memory
            is touched before it.
    """
    answers: Answers = {name: [] for name in runs}
    for number in range(dropped + repetitions):
        for name, run in runs.items():
            touch_memory(writes)
            answer = run()
            answers[name].append(answer)
            say(f"  {name} {number + 1}/{dropped + repetitions}: {answer['seconds']:.4g} s")
    return {name: values[dropped:] for name, values in answers.items()}


def seconds(answers: list[dict[str, Any]]) -> list[float]:
    """Return how long each repetition took."""
    return [answer["seconds"] for answer in answers]


def remove(path: Path) -> None:
    """Remove a file or a directory; fine where there is none."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def mqlake() -> str:
    """Return the path of the command that is installed beside this Python."""
    program = shutil.which("mqlake", path=Path(sys.executable).parent)
    assert program is not None, "mqlake is not installed beside this Python"
    return program


def say(text: str) -> None:
    """Tell the person who waits what goes on."""
    print(text, file=sys.stderr, flush=True)
