"""A script for a live store, as a workload that can be crashed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mqlake.formats.batch_consume_queue import UNIT_SIZE
from mqlake.formats.config import ConsumerOffsets
from mqlake.store.append.message import Message
from mqlake.store.config.config_files import read_config
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Durable, Found, require
from tests.crash.log_walk import good_records
from tests.crash.oracles import check_kept, check_store
from tests.crash.session import GROUP, OFFSET, TOPIC, Session, end_of
from tests.crash.snapshot import Snapshot
from tests.crash.trace import Note, Resize, Step, Write

Script = Callable[[Session], None]

SYNC = FlushDiskType.SYNC_FLUSH
ASYNC = FlushDiskType.ASYNC_FLUSH

_SMALL = {
    "mapped_file_size_commit_log": 4096,
    "mapped_file_size_consume_queue": 200,
    "mapper_file_size_batch_consume_queue": 3 * UNIT_SIZE,
    "max_hash_slot_num": 4,
    "max_index_num": 32,
}


@dataclass
class StoreWorkload:
    """One script, run on a store of small files."""

    name: str
    script: Script
    settings: StoreSettings
    history: dict[int, set[bytes]] = field(default_factory=dict)

    def run(self, disk: RecordedDisk, clock: ManualClock) -> None:
        session = Session(disk, clock, self.settings)
        self.script(session)
        self.history = session.history

    def examine(self, disk: RecordedDisk) -> Found:
        before = good_records(disk)
        offset = _offset(disk)
        store = OwnedStore.open(disk, self.settings, disk.clock)
        check_kept(disk, before)
        log = check_store(store, disk, self.history)
        numbers = frozenset(found.record.physical_offset for found in log.records)
        values = {f"next of {queue}": store.offsets.next(*queue) for queue in store.queues.queues()}
        values[OFFSET] = offset
        clamped = store.config.consumer_offsets.query(GROUP, TOPIC, 0) or 0
        end = store.offsets.next(TOPIC, 0)
        require(clamped == min(offset, end), f"{OFFSET} {offset} becomes {clamped}, not {end}")
        ended = store.config.incarnations.befores
        values.update({end_of(topic): before for topic, before in ended.items()})
        if not store.watermarks.confirms_at_append:
            # It serves them, so they are on the disk.
            for number in sorted(numbers):
                disk.record(Note(Durable(number)))
        self._open_again(disk)
        if len(disk.trace) % 8 == 0:
            self._go_on(RecordedDisk(disk.snapshot(), disk.clock))
        lowered = frozenset({(OFFSET, clamped)} if clamped < offset else ())
        return Found(numbers, frozenset(values.items()), lowered)

    def _open_again(self, disk: RecordedDisk) -> None:
        """Recovering what was just recovered changes nothing."""
        before, done = disk.snapshot(), len(disk.trace)
        disk.abandon()
        OwnedStore.open(disk, self.settings, disk.clock)
        _same(before, disk.snapshot())
        written = [step for step in disk.trace[done:] if _changes(step)]
        require(not written, f"a second recovery writes {written}")
        disk.abandon()

    def _go_on(self, disk: RecordedDisk) -> None:
        """More messages can be put, the store stopped, and opened without any recovery."""
        store = OwnedStore.open(disk, self.settings, disk.clock)
        upcoming = store.offsets.next(TOPIC, 0)
        require(upcoming >= 0, f"the next message would get the queue offset {upcoming}")
        result = store.puts.put(Message(TOPIC, b"one more", keys="more"))
        require(result.is_ok, f"a put after a recovery: {result.reason}")
        require(result.queue_offset == upcoming, "a put after a recovery has an odd offset")
        store.close()
        before = disk.snapshot()
        store = OwnedStore.open(disk, self.settings, disk.clock)
        store.close()
        _same(before, disk.snapshot())


def _offset(disk: RecordedDisk) -> int:
    """Return the consumer's offset in the file, which may be past the queue's end."""
    found = read_config(disk, ConsumerOffsets)
    return 0 if found is None else found.offset_table.get(f"{TOPIC}@{GROUP}", {}).get(0, 0)


def _same(before: Snapshot, after: Snapshot) -> None:
    old, new = before.files(), after.files()
    changed = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    require(not changed, f"opened again, {sorted(changed)} changed")
    require(before.directories() == after.directories(), "opened again, directories changed")


def _changes(step: Step) -> bool:
    return isinstance(step, (Write, Resize))


WORKLOADS: dict[str, StoreWorkload] = {}


def settings_of(flush: FlushDiskType, **settings: object) -> StoreSettings:
    """Return the settings of a store of small files, with some of them given."""
    return StoreSettings(**{**_SMALL, "flush_disk_type": flush, **settings})


def workload(flush: FlushDiskType = ASYNC, **settings: object) -> Callable[[Script], Script]:
    """Register a script under its function's name."""

    def register(script: Script) -> Script:
        name = script.__name__.replace("_", "-")
        assert name not in WORKLOADS, name
        WORKLOADS[name] = StoreWorkload(name, script, settings_of(flush, **settings))
        return script

    return register
