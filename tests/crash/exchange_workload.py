"""The exchange of a rebuild's directories for the old ones, as a workload that can be crashed."""

from __future__ import annotations

from dataclasses import dataclass

from mqlake.jobs.swap import PARTS, SCRATCH, Exchange
from mqlake.storage.durable import base_name, create_file, make_directories, parent
from mqlake.storage.read_file import read_file
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Found, ValueKept, ValueSet, require
from tests.crash.session import Session
from tests.crash.store_workload import SYNC, Script, StoreWorkload, settings_of
from tests.crash.trace import Note

WHOLE = "all derived files are there"
GENERATION = "finished rebuilds"

_MARK = "generation"
"""A file of `consumequeue` that is no topic."""

Generations = dict[str, int | None]


@dataclass
class ExchangeWorkload(StoreWorkload):
    """A script that exchanges the derived files of a stopped store for new ones."""

    def examine(self, disk: RecordedDisk) -> Found:
        again = RecordedDisk(disk.snapshot(), disk.clock)
        log, before = _log(again), generations(again)
        is_ready = again.exists(f"{SCRATCH}/ready")
        new = generations(again, f"{Exchange.new}/")
        exchange = Exchange(again)
        exchange.begin()
        after = generations(again)
        exchange.give_up()
        require(_log(again) == log, "the exchange changes the commit log")
        require(not again.exists(SCRATCH), "the rest stays")
        _check(before, new, after, is_ready=is_ready)
        is_whole = all(again.exists(part) for part in PARTS)
        rebuilt = super().examine(again)
        # Or whoever is there first starts the store.
        found = super().examine(disk)
        require(found.numbers == rebuilt.numbers, f"{found} without a rebuild, {rebuilt} with one")
        values = {(WHOLE, int(is_whole)), (GENERATION, max(_known(after), default=0))}
        return Found(found.numbers, found.values | values)


def _check(before: Generations, new: Generations, after: Generations, *, is_ready: bool) -> None:
    """Check that the next rebuild finds the parts of one generation, the new one once it is ready.

    A part without a generation was made by a store that was started in between, and stays.
    """
    told = f"{before} in place and {new} built, then {after}"
    expected = {**before, **new} if is_ready else before
    require(after.keys() == expected.keys(), f"parts that are missing: {told}")
    for part, generation in after.items():
        is_stores = generation is None and before.get(part, 0) is None
        require(is_stores or generation == expected[part], f"{part} is of another rebuild: {told}")
    require(len(_known(after)) <= 1, f"parts of several rebuilds: {told}")


def _known(found: Generations) -> set[int]:
    return {generation for generation in found.values() if generation is not None}


def generations(disk: RecordedDisk, prefix: str = "") -> Generations:
    """Return which rebuild built each part that there is; 0 is the store itself, None unknown."""
    paths = {part: f"{prefix}{part}" for part in PARTS}
    return {part: _generation(disk, path) for part, path in paths.items() if disk.exists(path)}


def _generation(disk: RecordedDisk, path: str) -> int | None:
    if disk.is_directory(path):
        path = _marked(disk, path)
    mark = (read_file(disk, path) or b"")[-1:]
    return mark[0] - 1 if mark and mark[0] else None


def _mark(disk: RecordedDisk, path: str, generation: int) -> None:
    if disk.is_directory(path):
        path = _marked(disk, path)
        if not disk.exists(path):
            disk.create(path, 1).close()
            disk.sync_directory(parent(path))
    file = disk.open_writable(path)
    file.write(file.size - 1, bytes([generation + 1]))
    file.sync()
    file.close()


def _marked(disk: RecordedDisk, path: str) -> str:
    """Return the file whose last byte, which no store looks at, has the mark of a directory."""
    if base_name(path) == "index":
        return f"{path}/{max(disk.names(path), default=_MARK)}"
    return f"{path}/{_MARK}"


def _log(disk: RecordedDisk) -> dict[str, bytes | None]:
    return {name: read_file(disk, f"commitlog/{name}") for name in disk.names("commitlog")}


def rebuild(s: Session) -> None:
    """Exchange the derived files for the same ones, but for the mark of a later rebuild."""
    disk = s.disk
    old = generations(disk)
    generation = max(_known(old), default=0)
    for part, found in old.items():
        if found is None:
            _mark(disk, part, generation)
    for note in (ValueSet(WHOLE, 1), ValueKept(WHOLE, 1)):
        disk.record(Note(note))
    with disk.own("lock"):
        exchange = Exchange(disk)
        exchange.begin()
        for part in PARTS:
            _copy(disk, part, f"{exchange.new}/{part}")
            _mark(disk, f"{exchange.new}/{part}", generation + 1)
        make_directories(disk, f"{exchange.work}/keys")
        create_file(disk, f"{exchange.work}/keys/1", 10).close()
        disk.record(Note(ValueSet(GENERATION, generation + 1)))
        exchange.commit()
        disk.record(Note(ValueKept(GENERATION, generation + 1)))


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
