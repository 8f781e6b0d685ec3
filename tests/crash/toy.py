"""A tiny log store that can be told to forget a step: to see that the simulator notices.

`log/N` holds records of 100 bytes (number, checksum, filling), two a file; `done` says how many
records need no check any more; `config` is a number, replaced by renaming.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from struct import Struct

from mqlake.storage.durable import create_file, make_directories, replace_file
from mqlake.storage.protocol import OwnedDirectory
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Acknowledged, Durable, Found, Sent, ValueKept, ValueSet, require
from tests.crash.trace import Note

_HEAD = Struct(">qI")
_SIZE = 700
_PER_FILE = 2


@dataclass
class Toy:
    """A workload over the toy store, right in all but the step named in `forgets`.

    One of "", "directory sync", "data sync", "checkpoint order", "temporary sync", "checksum",
    "recovery sync".
    """

    forgets: str = ""

    @property
    def name(self) -> str:
        return f"toy without {self.forgets}" if self.forgets else "toy"

    def run(self, disk: RecordedDisk, clock: ManualClock) -> None:
        make_directories(disk, "log")
        create_file(disk, "done", 8).close()
        for number in range(5):
            disk.record(Note(Sent(number)))
            self._append(disk, number)
            disk.record(Note(Acknowledged(number)))
            disk.record(Note(Durable(number)))
            if number == 3:
                self._checkpoint(disk, number)
        disk.record(Note(ValueSet("config", 7)))
        self._configure(disk, b"7")
        disk.record(Note(ValueKept("config", 7)))

    def _append(self, disk: OwnedDirectory, number: int) -> None:
        path, at = _place(number)
        if at == 0:
            file = disk.create(path, _PER_FILE * _SIZE)
            if self.forgets != "directory sync":
                disk.sync_directory("log")
        else:
            file = disk.open_writable(path)
        if number == 3 and self.forgets == "checkpoint order":
            self._checkpoint(disk, number)
        file.reserve(at, _SIZE)
        file.mapping()[at : at + _SIZE] = _record(number)
        file.written(at, _SIZE)
        if self.forgets != "data sync":
            file.sync()
        file.close()

    def _checkpoint(self, disk: OwnedDirectory, number: int) -> None:
        file = disk.open_writable("done")
        file.write(0, (number + 1).to_bytes(8, "big"))
        file.sync()
        file.close()

    def _configure(self, disk: OwnedDirectory, value: bytes) -> None:
        if self.forgets != "temporary sync":
            replace_file(disk, "config", value)
            return
        disk.create("config.tmp", 1).write(0, value)
        disk.replace("config.tmp", "config")
        disk.sync_directory("")

    def examine(self, disk: RecordedDisk) -> Found:
        certain = int.from_bytes(_bytes(disk, "done")[:8], "big")
        numbers: set[int] = set()
        while self._is_there(disk, len(numbers), is_certain=len(numbers) < certain):
            numbers.add(len(numbers))
        self._recover(disk, len(numbers))
        config = _bytes(disk, "config")
        require(not config or config == b"7", f"config: {config!r}")
        for number in numbers:
            disk.record(Note(Durable(number)))
        return Found(frozenset(numbers), frozenset({("config", int(config or b"0"))}))

    def _is_there(self, disk: RecordedDisk, number: int, *, is_certain: bool) -> bool:
        path, at = _place(number)
        data = _bytes(disk, path)[at : at + _SIZE]
        is_good = data == _record(number)
        if is_certain or (self.forgets == "checksum" and data[:8] == _record(number)[:8]):
            require(is_good and len(data) == _SIZE, f"record {number} is none")
        return is_good

    def _recover(self, disk: RecordedDisk, count: int) -> None:
        """Make what will be served durable, since it may be in the page cache only."""
        if self.forgets == "recovery sync":
            return
        for path in sorted({_place(number)[0] for number in range(count)}):
            file = disk.open_writable(path)
            file.sync()
            file.close()
        disk.sync_directory("log" if disk.is_directory("log") else "")
        disk.sync_directory("")


def _place(number: int) -> tuple[str, int]:
    file, place = divmod(number, _PER_FILE)
    return f"log/{file}", place * _SIZE


def _record(number: int) -> bytes:
    body = bytes([number + 1]) * (_SIZE - _HEAD.size)
    return _HEAD.pack(number + 1, zlib.crc32(body)) + body


def _bytes(disk: RecordedDisk, path: str) -> bytes:
    return disk.open(path).read(0, 1 << 20) if disk.exists(path) else b""
