"""A script for a Kafka log directory that is written, as a workload that can be crashed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mqlake.formats.kafka import control_record, record_batch
from mqlake.formats.kafka.control_record import ControlType, EndMarker
from mqlake.formats.kafka.file_name import Kind, file_name, partition_name
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.repair.rebuild_index import rebuild_segments
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.verify.partition import verify_partition
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.kafka.write.owned_partition import OwnedPartition
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Acknowledged, Durable, Found, Retired, Sent, require
from tests.crash.snapshot import Snapshot
from tests.crash.trace import Note

TOPIC = "orders"
PATH = partition_name(TOPIC, 0)
SMALL = LogSettings(segment_bytes=1500, index_interval_bytes=150, segment_index_bytes=240)


@dataclass
class History:
    """All records that were ever appended, by number: value, and the number of the one before."""

    values: dict[int, bytes] = field(default_factory=dict)
    before: dict[int, int | None] = field(default_factory=dict)


class KafkaSession:
    """A log directory with one partition, and who writes it."""

    def __init__(
        self, disk: RecordedDisk, clock: ManualClock, settings: LogSettings, history: History
    ) -> None:
        self.disk, self.clock, self.settings, self.history = disk, clock, settings, history
        self._log: list[int | None] = []
        """Numbers of the records from offset 0 on; None is a marker of a transaction."""
        self.epoch = 0
        self.start()

    def start(self) -> None:
        """Open the directory and its partition."""
        self.logs, self.partition = _open(self.disk, self.settings)

    def append(self, count: int = 3, size: int = 60, **batch: object) -> None:
        """Append records unlike all others, as one batch."""
        first, records = len(self._log), []
        for _ in range(count):
            number = len(self.history.values)
            value = f"{number}:".encode() + b"0123456789" * (size // 10)
            self.history.values[number] = value
            self.history.before[number] = self._last()
            self._log.append(number)
            records.append(NewRecord(self.clock.milliseconds(), b"%d" % number, value))
            self.disk.record(Note(Sent(number)))
        data = record_batch.encode(first, records, leader_epoch=self.epoch, **batch)
        self.partition.append_batches(data)
        for number in self._log[first:]:
            self.disk.record(Note(Acknowledged(number)))

    def _last(self) -> int | None:
        return next((number for number in reversed(self._log) if number is not None), None)

    def send(self, producer: int) -> None:
        """Append a batch of a producer's transaction."""
        self.append(
            2, producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True
        )

    def end_transaction(self, producer: int, kind: ControlType) -> None:
        """Append the marker of its end."""
        data = control_record.encode_end_marker(
            len(self._log),
            self.clock.milliseconds(),
            EndMarker(kind, 0),
            producer_id=producer,
            producer_epoch=0,
            leader_epoch=self.epoch,
        )
        self._log.append(None)
        self.partition.append_batches(data)

    def flush(self) -> None:
        self.partition.flush()
        self._all_durable()

    def roll(self) -> None:
        self.partition.roll()
        self._all_durable()

    def _all_durable(self) -> None:
        for number in self._log:
            if number is not None:
                self.disk.record(Note(Durable(number)))

    def truncate(self, offset: int) -> None:
        """Cut the log; a batch that holds the offset goes as a whole."""
        self._retire(self._log[offset - 2 :])
        self.partition.truncate_to(offset)
        del self._log[self.partition.log_end_offset :]

    def begin_at(self, offset: int) -> None:
        """Show nothing before an offset any more, from the next start on."""
        self._retire(self._log[:offset])
        self.partition.log_start_offset = offset
        self._log += [None] * (offset - len(self._log))

    def _retire(self, numbers: list[int | None]) -> None:
        for number in numbers:
            if number is not None:
                self.disk.record(Note(Retired(number)))

    def stop(self) -> None:
        """Stop in good order."""
        self.logs.__exit__(None, None, None)
        self._all_durable()

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """End the process without a word, and start anew."""
        self.disk.abandon()
        self.start()

    def rebuild_indexes(self) -> None:
        """Make all index files again, of a directory that nobody owns."""
        with Partition(self.disk, PATH) as partition:
            rebuild_segments(self.disk, PATH, partition, self.settings)

    def lose_indexes(self) -> None:
        """Let somebody remove the offset indexes."""
        for segment in self.partition.segments:
            self.disk.remove(f"{PATH}/{file_name(segment.base_offset, Kind.OFFSET_INDEX)}")
        self.disk.sync_directory(PATH)


def _open(disk: RecordedDisk, settings: LogSettings) -> tuple[OwnedLogDirectory, OwnedPartition]:
    logs = OwnedLogDirectory(disk, clock=disk.clock)
    logs.__enter__()
    return logs, logs.partition(TOPIC, 0, settings)


@dataclass
class KafkaWorkload:
    """One script, run on a log directory of small segments."""

    name: str
    script: Callable[[KafkaSession], None]
    settings: LogSettings
    history: History = field(default_factory=History)

    def run(self, disk: RecordedDisk, clock: ManualClock) -> None:
        self.history = History()
        self.script(KafkaSession(disk, clock, self.settings, self.history))

    def examine(self, disk: RecordedDisk) -> Found:
        image = disk.snapshot()
        logs, partition = _open(disk, self.settings)
        numbers = self._check(disk)
        recovered = disk.snapshot()
        self._go_on(RecordedDisk(image, disk.clock), partition.log_end_offset)
        disk.abandon()
        logs, partition = _open(disk, self.settings)
        _same(recovered, disk.snapshot())
        logs.__exit__(None, None, None)
        require(self._check(disk) == numbers, "a clean stop loses or finds records")
        return Found(frozenset(numbers))

    def _check(self, disk: RecordedDisk) -> list[int]:
        """Check all that can be read; return the numbers of the records."""
        looks = disk.bystander()
        with LogDirectory(looks).partition(TOPIC, 0) as reader:
            numbers = self._numbers(reader)
            damage = verify_partition(reader, deep=True).damage
            require(not damage, f"damage: {damage}")
            start, end = reader.log_start_offset, reader.log_end_offset
            aborted = sorted(reader.aborted_transactions(start, end))
        with Partition(looks, PATH, log_start_offset=start, recovery_point=0) as reader:
            found = sorted(reader.aborted_transactions(start, end))
            require(aborted == found, f"aborted by the index: {aborted}, by the log: {found}")
        return numbers

    def _numbers(self, reader: Partition) -> list[int]:
        numbers: list[int] = []
        for record in reader.records():
            number = int(record.key or b"-1")
            require(record.value == self.history.values.get(number), f"{number} is another")
            if numbers:
                before = self.history.before[number]
                require(before == numbers[-1], f"{number} follows {numbers[-1]}, not {before}")
            numbers.append(number)
        return numbers

    def _go_on(self, disk: RecordedDisk, end: int) -> None:
        """More can be appended, the segment rolled, and the directory stopped."""
        logs, partition = _open(disk, self.settings)
        now = disk.clock.milliseconds()
        partition.append([NewRecord(now, b"more", b"more")])
        partition.roll()
        logs.__exit__(None, None, None)
        with LogDirectory(disk.bystander()).partition(TOPIC, 0) as reader:
            last = list(reader.records())[-1]
            require((last.offset, last.key) == (end, b"more"), f"{last} is the last record")
            damage = verify_partition(reader).damage
            require(not damage, f"damage after going on: {damage}")


def _same(before: Snapshot, after: Snapshot) -> None:
    """Compare logs and aborted transactions.

    Indexes may have other entries after a recovery than after a clean stop, and room for more.
    """
    old, new = (_lasting(snapshot.files()) for snapshot in (before, after))
    changed = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    require(not changed, f"recovered again, {sorted(changed)} changed")


def _lasting(files: dict[str, bytes]) -> dict[str, bytes]:
    kinds = (Kind.LOG, Kind.TRANSACTION_INDEX)
    return {path: data.rstrip(b"\0") for path, data in files.items() if path.endswith(kinds)}


KAFKA_WORKLOADS: dict[str, KafkaWorkload] = {}


def kafka_workload(
    **settings: object,
) -> Callable[[Callable[[KafkaSession], None]], Callable[[KafkaSession], None]]:
    """Register a script under its function's name."""

    def register(script: Callable[[KafkaSession], None]) -> Callable[[KafkaSession], None]:
        name = script.__name__.replace("_", "-")
        assert name not in KAFKA_WORKLOADS, name
        fields = {name: getattr(SMALL, name) for name in SMALL.__struct_fields__}
        KAFKA_WORKLOADS[name] = KafkaWorkload(name, script, LogSettings(**{**fields, **settings}))
        return script

    return register
