"""The exchange of a rebuild's directories for the old ones, as a workload that can be crashed."""

from __future__ import annotations

from dataclasses import dataclass

from mqlake.jobs.swap import PARTS, Exchange
from mqlake.storage.durable import create_file, make_directories
from mqlake.storage.read_file import read_file
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Found, ValueKept, ValueSet, require
from tests.crash.session import Session
from tests.crash.store_workload import SYNC, Script, StoreWorkload, settings_of
from tests.crash.trace import Note

WHOLE = "all derived files are there"


@dataclass
class ExchangeWorkload(StoreWorkload):
    """A script that exchanges the derived files of a stopped store for new ones."""

    def examine(self, disk: RecordedDisk) -> Found:
        again = RecordedDisk(disk.snapshot(), disk.clock)
        log = _log(again)
        exchange = Exchange(again)
        exchange.begin()
        exchange.give_up()
        require(_log(again) == log, "the exchange changes the commit log")
        require(not again.exists(f"{exchange.new}/{PARTS[0]}"), "the rest stays")
        is_whole = all(again.exists(part) for part in PARTS)
        rebuilt = super().examine(again)
        # Or whoever is there first starts the store.
        found = super().examine(disk)
        require(found.numbers == rebuilt.numbers, f"{found} without a rebuild, {rebuilt} with one")
        return Found(found.numbers, found.values | {(WHOLE, int(is_whole))})


def _log(disk: RecordedDisk) -> dict[str, bytes | None]:
    return {name: read_file(disk, f"commitlog/{name}") for name in disk.names("commitlog")}


def rebuild(s: Session) -> None:
    """Exchange the derived files for the same ones, as a rebuild builds them."""
    disk = s.disk
    for note in (ValueSet(WHOLE, 1), ValueKept(WHOLE, 1)):
        disk.record(Note(note))
    with disk.own("lock"):
        exchange = Exchange(disk)
        exchange.begin()
        for part in PARTS:
            _copy(disk, part, f"{exchange.new}/{part}")
        make_directories(disk, f"{exchange.work}/keys")
        create_file(disk, f"{exchange.work}/keys/1", 10).close()
        exchange.commit()


def _copy(disk: RecordedDisk, source: str, target: str) -> None:
    if not disk.is_directory(source):
        data = read_file(disk, source) or b""
        file = disk.create(target, len(data))
        file.write(0, data)
        file.sync()
        file.close()
        return
    disk.make_directory(target)
    for name in disk.names(source):
        _copy(disk, f"{source}/{name}", f"{target}/{name}")
    disk.sync_directory(target)


EXCHANGE_WORKLOADS: dict[str, ExchangeWorkload] = {}


def exchange_workload(script: Script) -> Script:
    """Register a script under its function's name."""
    name = script.__name__.replace("_", "-")
    EXCHANGE_WORKLOADS[name] = ExchangeWorkload(name, script, settings_of(SYNC))
    return script
