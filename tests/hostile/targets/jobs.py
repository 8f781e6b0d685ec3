"""Mutated stores on a disk, rebuilt and verified."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mqlake.errors import MqlakeError
from mqlake.formats import consume_queue, index_file, record
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import is_safe_topic
from mqlake.formats.index_file import index_keys
from mqlake.formats.java_string import index_key_hash
from mqlake.formats.record import Fault, Record
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import RebuildReport, rebuild
from mqlake.jobs.verify import verify
from tests.hostile import disk, stores
from tests.hostile.cases import Case, Target, require, same
from tests.hostile.stores import Files

SIZES = {
    "queue_file_size": stores.QUEUE_FILE,
    "hash_slots": stores.SLOTS,
    "max_index": stores.ENTRIES,
}
TASKS = ((1, 2), (1, 5), (2, 3))
PARTS = {"consumequeue", "index", "checkpoint"}


def mutated(case: Case) -> None:
    """Rebuild a mutated store twice, cut into different tasks, and verify it."""
    check(case, stores.mutated(case).files)


def check(case: Case, files: Files, tasks: tuple[int, int] | None = None) -> None:
    with disk.sandbox() as place:
        store = place / "store"
        disk.write(files, store)
        before = disk.tree(store)
        first, second = tasks or case.dice.choice(TASKS)
        case.tell(f"rebuild with {first} and {second} tasks")
        report, one = _rebuilt(store, place / "one", first)
        other, two = _rebuilt(store, place / "two", second)
        differing = sorted(path for path in {*one, *two} if one.get(path) != two.get(path))
        require(not differing, f"{first} and {second} tasks make different {differing}")
        same(report is None, other is None, "outcomes of different numbers of tasks")
        if report:
            case.seen["rebuilt"] += 1
            _check_made(report, one, before)
        else:
            case.seen["refused"] += 1
        found = verify(store, LocalEngine(2), tasks=case.dice.choice((1, 3)))
        same(found.ok, not found.damage, "ok, and no damage")
        msgspec.json.encode(found)
        case.seen["ok" if found.ok else "damaged"] += 1
        same(disk.tree(store), before, "the store before and after")
        same({path.name for path in place.iterdir()} - {"one", "two"}, {"store"}, "names made")
        if report and _has_whole_segments(before):
            _rebuild_in_place(case, store)


def _rebuilt(store: Path, out: Path, tasks: int) -> tuple[RebuildReport | None, Files]:
    try:
        report = rebuild(
            store,
            LocalEngine(2),
            out=out,
            tasks=tasks,
            **SIZES,
        )
    except MqlakeError:
        return None, {}
    made = {path.name for path in out.iterdir()}
    same(made, PARTS, "parts made")
    return report, disk.tree(out)


def _has_whole_segments(files: Files) -> bool:
    logs = [data for path, data in files.items() if path.startswith("commitlog/")]
    return {len(data) for data in logs} == {stores.SEGMENT}


def _rebuild_in_place(case: Case, store: Path) -> None:
    """Require that verify finds no fault with the entries that rebuild has made."""
    made = rebuild(store, LocalEngine(2), **SIZES)
    found = verify(store, LocalEngine(2), dialect=made.settings.dialect)
    if not made.refused and not made.queues_kept:
        case.seen["rebuilt in place and verified"] += 1
        for entries in (found.queue_entries, found.index_entries):
            faults = [fault.examples for fault in entries.faults if fault.count]
            require(not faults, f"after a rebuild verify finds {faults}")


def _check_made(report: RebuildReport, made: Files, store: Files) -> None:
    """Require that each entry names a record that asks for it."""
    log = {
        int(name.rpartition("/")[2]): data
        for name, data in store.items()
        if name.startswith("commitlog/") and name[-20:].isdecimal()
    }
    entries = keys = 0
    for path, data in made.items():
        kind, *names = path.split("/")
        if kind == "consumequeue":
            topic, queue_id, name = names
            require(is_safe_topic(topic.encode()), f"a directory {topic!r}")
            for at in range(0, len(data), ENTRY_SIZE):
                entry = consume_queue.decode(data, at)
                if consume_queue.is_written(entry) and not consume_queue.is_blank(entry):
                    found = _record(log, entry.physical_offset)
                    said = (topic, int(queue_id), (int(name) + at) // ENTRY_SIZE, entry.size)
                    asked = (found.topic, found.queue_id, found.queue_offset, found.size)
                    same(said, asked, f"entry and record at {entry.physical_offset}")
                    same(entry.tags_code, found.tags_code, "tags codes")
                    entries += 1
        elif kind == "index":
            header = index_file.decode_header(data)
            for number in range(1, header.index_count):
                found = _record(log, (one := _entry(data, number)).physical_offset)
                texts = index_keys(found.topic, found.properties, report.settings.dialect)
                hashes = {index_key_hash(text) for text in texts}
                require(one.key_hash in hashes, f"no key of hash {one.key_hash}")
                keys += 1
    same((entries, keys), (report.queue_entries, report.index_entries), "entries, and as reported")


def _entry(data: bytes, number: int) -> index_file.IndexEntry:
    return index_file.decode_entry(data, stores.SLOTS, number)


def _record(log: dict[int, bytes], offset: int) -> Record:
    base = max((each for each in log if each <= offset), default=-1)
    require(base >= 0, f"an entry names {offset}, before the log's beginning")
    data = log[base]
    fault, _ = record.check(data, offset - base, len(data), offset)
    require(fault in (Fault.GOOD, Fault.CRC), f"an entry names {offset}: {fault.name}")
    return record.decode(data, offset - base, crc=False)


def sound(case: Case) -> None:
    """Require that what is called sound is sound: else the mutations prove nothing."""
    files = stores.sound(case.dice).files
    files.pop("abort", None)
    with disk.sandbox() as place:
        disk.write(files, place / "store")
        found = verify(place / "store", LocalEngine(2))
        require(found.ok, f"damage in a sound store: {found.damage[:3]}")
        require(found.dialect is Dialect.V5_5, "another dialect")
        _, made = _rebuilt(place / "store", place / "out", 1)
    for path, data in made.items():
        if path.startswith("consumequeue/"):
            same(data, files[path], path)
    same(_index_files(files), _index_files(made), "index files")


def _index_files(files: Files) -> list[bytes]:
    """Return those that have entries, in order; names are times."""
    found = (data for path, data in sorted(files.items()) if path.startswith("index/"))
    return [data for data in found if index_file.decode_header(data).index_count > 1]


TARGETS = (
    Target(
        "rebuild-verify",
        "Such stores on a disk: `rebuild` and `verify`. A rebuild into another directory leaves "
        "the store unchanged and creates only the three parts; the number of tasks changes no "
        "byte; every queue and index entry points at a record that it belongs to. `verify` never "
        "raises, and finds no error in the entries of a rebuild in place.",
        mutated,
        0.006,
    ),
)
