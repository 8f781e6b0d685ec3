"""Kill a process that puts messages, again and again, and look for what it acknowledged."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import make_settings
from tests.crash.child import SETTINGS, be_child, message
from tests.crash.expectation import require
from tests.crash.log_walk import LogRecord, walk
from tests.crash.oracles import check_index, check_queues, check_reads
from tests.programs.forked import Forked, pipe

MOST = 400
"""Acknowledged messages after which a process is killed at the latest."""


@dataclass
class Kills:
    """A store and what it acknowledged.

    Attributes:
        flush: the store's flushDiskType.
        kills, messages: how many there were.
    """

    path: Path
    flush: str
    kills: int = 0
    messages: int = 0
    _acknowledged: set[int] = field(default_factory=set)
    _next: int = 0

    def kill_one(self, dice: random.Random) -> None:
        """Start a process, kill it at some moment, and check what is in the directory.

        Raises:
            ViolationError: something is missing, or was never sent.
        """
        with _child(self.path, self.flush, self._next) as child:
            for _ in range(dice.randrange(1, MOST)):
                self._note(child.lines.readline())
            child.process.kill()
            for line in child.lines:
                if line.endswith("\n"):  # else it died while it was writing it
                    self._note(line)
        self.kills += 1
        self._check()

    def _note(self, line: str) -> None:
        numbers = {int(word) for word in line.split()}
        require(bool(numbers), "the process has ended by itself")
        self._acknowledged |= numbers
        self.messages += len(numbers)

    def _check(self) -> None:
        directory = LocalOwnedDirectory(self.path)
        settings = make_settings({**SETTINGS, "flush_disk_type": self.flush})
        store = OwnedStore.open(directory, settings)
        try:
            log = walk(directory)
            require(store.log.end == log.end, f"the log's end is {store.log.end}, not {log.end}")
            found = [_number(record) for record in log.records]
            require(len(found) == len({*found}), "a message is there twice")
            lost = self._acknowledged - {*found}
            require(not lost, f"lost: messages {sorted(lost)[:20]}")
            check_queues(store, directory, log)
            check_index(store, directory, log)
            check_reads(store, log)
            self._next = max(found, default=-1) + 1
        finally:
            store.close()


def _number(found: LogRecord) -> int:
    """Return the number of a message that is just as it was sent."""
    number = int(found.record.body.partition(b":")[0])
    sent = message(number)
    record = found.record
    same = (record.topic, record.queue_id, record.body, record.tags, record.keys)
    require(
        same == (sent.topic, sent.queue_id, sent.body, sent.tags, [sent.keys]),
        f"message {number} is not as it was sent",
    )
    return number


class _Child(NamedTuple):
    process: Forked
    lines: IO[str]


@contextmanager
def _child(path: Path, flush: str, first: int) -> Iterator[_Child]:
    ours, theirs = pipe(duplex=False)
    with ours, theirs, os.fdopen(os.dup(ours.fileno())) as lines:
        process = Forked(be_child, str(path), flush, first, theirs)
        theirs.close()  # else the lines would not end with the process
        try:
            yield _Child(process, lines)
        finally:
            process.kill()
            process.wait()
