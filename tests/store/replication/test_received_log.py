"""A slave's log is its master's, however the bytes arrive."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from mqlake.errors import DiskError, StoreError
from mqlake.formats import record
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store import Message
from mqlake.store.core import role
from mqlake.store.live_settings import current
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.owned_store import OwnedStore
from mqlake.store.replication.received_log import ReceivedLog
from mqlake.store.settings import make_settings
from tests.crash.disk import RecordedDisk
from tests.store.appending import SetClock

SIZE = 1 << 13


def opened(
    role: str = "ASYNC_MASTER", size: int = SIZE, disk: OwnedDirectory | None = None
) -> OwnedStore:
    settings = {
        "mappedFileSizeCommitLog": size,
        "brokerRole": role,
        "maxHashSlotNum": 10,
        "maxIndexNum": 1000,
        "mappedFileSizeConsumeQueue": 400,
    }
    return OwnedStore.open(disk or RecordedDisk(), current(make_settings(settings)), SetClock())


def filled(count: int = 60, seed: int = 1) -> OwnedStore:
    master, chance = opened(), random.Random(seed)
    for number in range(count):
        body = chance.randbytes(chance.randrange(600))
        result = master.puts.put(Message(f"Topic{number % 3}", body, keys=f"k{number}", tags="t"))
        assert result.is_ok
    return master


def stream(log: OwnedCommitLog, start: int = 0) -> bytes:
    """Return a log as its master sends it."""
    parts: list[bytes] = []
    while start < log.end:
        segment = log.segment_at(start)
        assert segment is not None
        stop = min(segment.end, log.end)
        parts.append(bytes(log.read(start, stop - start)))
        start = stop
    return b"".join(parts)


def pieces(data: bytes, chance: random.Random, most: int) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = chance.randrange(1, most)
        yield data[at : at + size]
        at += size


def same(slave: OwnedStore, master: OwnedStore) -> None:
    assert slave.log.end == master.log.end
    assert stream(slave.log) == stream(master.log)
    for store in (slave, master):
        while store.watermarks.dispatched < store.log.end:
            store.tick()
    for topic in master.reads.topics():
        for queue_id in master.reads.queues(topic):
            assert slave.reads.queue(topic, queue_id) == master.reads.queue(topic, queue_id)
            count = master.reads.queue(topic, queue_id).max_offset
            assert slave.reads.entries(topic, queue_id, 0, count) == master.reads.entries(
                topic, queue_id, 0, count
            )
    assert slave.offsets == master.offsets


@pytest.mark.parametrize("most", [2, 7, 100, 5000, 100_000])
def test_bytes_may_arrive_cut_anywhere(most: int) -> None:
    master, slave, chance = filled(), opened("SLAVE"), random.Random(most)
    assert len(master.log.segments) > 2
    for piece in pieces(stream(master.log), chance, most):
        before = slave.role.received.expected
        slave.role.receive(piece)
        assert slave.role.received.expected == before + len(piece)
        slave.tick()
    same(slave, master)


@pytest.mark.parametrize("most", [1000, 5000, 100_000])
def test_many_bytes_are_appended_from_where_they_are(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("mqlake.store.replication.received_log._LONG", 100)
    in_place: list[int] = []
    usual = ReceivedLog._append_in_place  # pyright: ignore[reportPrivateUsage]

    def append(received: ReceivedLog, view: memoryview) -> int:
        in_place.append(usual(received, view))
        return in_place[-1]

    monkeypatch.setattr(ReceivedLog, "_append_in_place", append)
    for seed in range(5):
        master, slave, chance = filled(seed=seed), opened("SLAVE"), random.Random(seed)
        for piece in pieces(stream(master.log), chance, most):
            # The buffer is used again, as that of a connection.
            buffer = bytearray(piece)
            slave.role.receive(memoryview(buffer))
            buffer[:] = bytes(len(buffer))
            view = slave.log.file(slave.log.segments[-1]).view() if slave.log.segments else b""
            after = slave.log.end - (slave.log.segments[-1].base if slave.log.segments else 0)
            assert not bytes(view[after : after + 4]).strip(b"\0")
        same(slave, master)
    assert any(in_place)


@pytest.mark.parametrize("long", [100, 1 << 16])
def test_mutated_bytes_are_judged_alike_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch, long: int
) -> None:
    master, dice = filled(30), random.Random(4)
    data = stream(master.log)
    for _ in range(200):
        changed = bytearray(data[: dice.randrange(1, len(data))])
        for _ in range(dice.choice((0, 1, 3))):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        cut = dice.randrange(len(changed))
        found: list[tuple[str, int, int, bytes]] = []
        for most, view in ((1 << 30, bytes), (long, bytearray)):
            monkeypatch.setattr("mqlake.store.replication.received_log._LONG", most)
            slave, problem = opened("SLAVE"), ""
            try:
                for part in (changed[:cut], changed[cut:]):
                    slave.role.receive(memoryview(view(part)))
            except StoreError as error:
                problem = str(error)
            log, received = slave.log, slave.role.received
            found.append((problem, log.end, received.damaged, stream(log)))
        assert found[0] == found[1]


def test_only_whole_records_are_in_the_log() -> None:
    master, slave = filled(10), opened("SLAVE")
    data = stream(master.log)
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + int.from_bytes(data[ends[-1] : ends[-1] + 4], "big"))
    for at in range(0, len(data), 3):
        slave.role.receive(data[at : at + 3])
        done = min(at + 3, len(data))
        assert slave.log.end == max(end for end in ends if end <= done)
        # What is held is nowhere in the file: a process that dies leaves no half of a record.
        view = slave.log.file(slave.log.segments[-1]).view() if slave.log.segments else b""
        assert not bytes(view[slave.log.end : slave.log.end + 64]).strip(b"\0")


def test_what_was_held_comes_again_after_it_was_dropped() -> None:
    master, slave, chance = filled(), opened("SLAVE"), random.Random(3)
    data = stream(master.log)
    while slave.log.end < len(data):
        at = slave.log.end
        for piece in pieces(data[at : at + chance.randrange(1, 9000)], chance, 700):
            slave.role.receive(piece)
        slave.role.received.drop()
        assert slave.role.received.expected == slave.log.end
    same(slave, master)


def test_a_slave_goes_on_as_master_when_it_is_opened_as_one() -> None:
    master, disk = filled(), RecordedDisk()
    slave = opened("SLAVE", disk=disk)
    data = stream(master.log)
    slave.role.receive(data[:-5])
    slave.abandon()
    promoted = opened(disk=disk)
    assert promoted.log.end < len(data)
    assert stream(promoted.log) == data[: promoted.log.end]
    assert not promoted.recovered.cut_off
    before = promoted.offsets.next("Topic0", 0)
    result = promoted.puts.put(Message("Topic0", b"new"))
    assert (result.is_ok, result.queue_offset) == (True, before)


@pytest.mark.parametrize("together", [False, True])
def test_a_topic_that_was_deleted_and_made_again(together: bool) -> None:
    master, disk = opened(), RecordedDisk()
    slave = opened("SLAVE", disk=disk)
    master.puts.put(Message("Others", b"other"))
    for number in range(30):
        assert master.puts.put(Message("Topic0", b"old", keys=f"k{number}")).is_ok
    if not together:
        slave.role.receive(stream(master.log))
        slave.tick()
    master.removal.remove("Topic0")
    for _ in range(2):
        assert master.puts.put(Message("Topic0", b"new")).is_ok
    slave.role.receive(stream(master.log, slave.log.end))
    same(slave, master)
    slave.role.receive(stream(master.log, slave.log.end))
    for job in slave.role.leading():
        if job is not None:
            job.run()
            job.done()
    same(slave, master)
    slave.abandon()
    promoted = opened(disk=disk)
    same(promoted, master)
    assert promoted.puts.put(Message("Topic0", b"newer")).queue_offset == 2


@pytest.mark.parametrize("turns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("new", [1, 2, 3])
@pytest.mark.parametrize("old", [1, 2, 3])
def test_a_topic_that_begins_again_in_a_step_that_ran_out_of_time(
    old: int, new: int, turns: int
) -> None:
    master, slave = opened(), opened("SLAVE")
    for queue_id in (2, 0, 1):
        assert master.puts.put(Message("Topic", b"old", queue_id=queue_id)).is_ok
    slave.role.receive(stream(master.log))
    for _ in range(turns):
        slave.tick(0.0)
    for _ in range(old):
        assert master.puts.put(Message("Topic", b"old", queue_id=2)).is_ok
    master.removal.remove("Topic")
    for _ in range(new):
        assert master.puts.put(Message("Topic", b"new", queue_id=2)).is_ok
    slave.role.receive(stream(master.log, slave.log.end))
    same(slave, master)
    assert slave.reads.queues("Topic") == [2]
    assert [each.body for each in slave.reads.get("Topic", 2, 0).records] == [b"new"] * new


@pytest.mark.parametrize("queues", [1, 2, 3, 40])
def test_a_promotion_dispatches_many_new_queues_in_many_turns(
    queues: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(role, "LONGEST_TURN", 0.0)
    master, slave = opened(), opened("SLAVE")
    for number in range(queues):
        assert master.puts.put(Message("Topic", b"body", queue_id=number)).is_ok
    slave.role.receive(stream(master.log))
    for job in slave.role.leading():
        if job is not None:
            job.run()
            job.done()
    same(slave, master)


def test_a_log_may_begin_where_the_masters_does() -> None:
    master = filled()
    start = master.log.segments[1].base
    for disk in (RecordedDisk(), RecordedDisk()):
        slave = opened("SLAVE", disk=disk)
        slave.role.begin_at(start)
        slave.role.receive(stream(master.log, start))
        assert (slave.log.min_offset, slave.log.end) == (start, master.log.end)
        slave.tick()
        slave.abandon()  # a start after a crash finds all of it
        again = opened("SLAVE", disk=disk)
        assert (again.log.min_offset, again.log.end) == (start, master.log.end)
        assert again.role.received.expected == master.log.end
        master.tick()
        for queue in (("Topic0", 0), ("Topic1", 0), ("Topic2", 0)):
            first, end = again.reads.queue(*queue)
            assert end == master.reads.queue(*queue).max_offset
            count = end - first
            found = again.reads.entries(*queue, first, count)
            assert found == master.reads.entries(*queue, first, count)
        with pytest.raises(StoreError, match="not empty"):
            again.role.begin_at(0)


@pytest.mark.parametrize("size", [SIZE // 2, SIZE * 2])
def test_a_master_with_another_file_size_is_refused(size: int) -> None:
    master, slave = filled(), opened("SLAVE", size)
    with pytest.raises(StoreError, match="mappedFileSizeCommitLog"):
        slave.role.receive(stream(master.log))
    assert slave.log.end <= max(size, SIZE)
    assert slave.role.received.expected == slave.log.end


GARBAGE = [
    b"\0" * 100,
    b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
    b"\xff" * 100,
    (1 << 30).to_bytes(4, "big") + record.V1_MAGIC.to_bytes(4, "big") + b"\0" * 100,
    (3).to_bytes(4, "big") + record.V1_MAGIC.to_bytes(4, "big") + b"\0" * 100,
    (50).to_bytes(4, "big") + record.BLANK_MAGIC.to_bytes(4, "big") + b"\0" * 100,
]


@pytest.mark.parametrize("data", GARBAGE)
def test_invalid_records_are_not_appended(data: bytes) -> None:
    master, slave = filled(5), opened("SLAVE")
    good = stream(master.log)
    slave.role.receive(good)
    with pytest.raises(StoreError, match="master's log at physical offset"):
        slave.role.receive(data)
    assert slave.role.received.expected == len(good)
    result = master.puts.put(Message("Topic0", b"more"))
    slave.role.receive(stream(master.log, result.physical_offset))
    same(slave, master)


def test_a_record_for_another_place_is_not_appended() -> None:
    master, slave = filled(5), opened("SLAVE")
    data = stream(master.log)
    second = int.from_bytes(data[:4], "big")
    with pytest.raises(StoreError, match="not the record's own"):
        slave.role.receive(data[second:])
    assert slave.log.end == 0


def test_a_record_leaves_room_for_the_blank_record_that_ends_a_file() -> None:
    """A log that rolls by itself would have what follows at other offsets than the master."""
    master = opened(size=2 * SIZE)
    overhead = master.puts.put(Message("Topic0", b"x")).size - 1
    second = overhead + 1
    for left in (record.FRAME_SIZE, record.FRAME_SIZE - 1, 1, 0):
        master, slave = opened(size=2 * SIZE), opened("SLAVE")
        master.puts.put(Message("Topic0", b"x"))
        master.puts.put(Message("Topic0", bytes(SIZE - second - overhead - left)))
        assert master.log.end == SIZE - left
        if left == record.FRAME_SIZE:
            slave.role.receive(stream(master.log))
            assert slave.log.end == SIZE - left
        else:
            with pytest.raises(StoreError, match="does not fit"):
                slave.role.receive(stream(master.log))
            assert slave.role.received.expected == 0


def test_a_damaged_body_is_copied_as_it_is_and_counted() -> None:
    master, slave = filled(8), opened("SLAVE")
    data = bytearray(stream(master.log))
    first = int.from_bytes(data[:4], "big")
    _, layout = record.check(data, first, len(data), first)
    assert layout is not None
    assert layout.body_length
    data[layout.body_at] ^= 1
    slave.role.receive(memoryview(data))
    assert stream(slave.log) == data
    assert slave.role.received.damaged == 1


def test_a_record_longer_than_a_window() -> None:
    size = 8 << 20
    master, slave = opened(size=size), opened("SLAVE", size)
    big = Message("Topic0", random.Random(1).randbytes(3 << 20))
    for message in (Message("Topic0", b"small"), big, Message("Topic0", b"small"), big, big):
        assert master.puts.put(message).is_ok
    for piece in pieces(stream(master.log), random.Random(2), 60_000):
        slave.role.receive(piece)
    same(slave, master)


def test_a_store_that_takes_nothing_receives_nothing() -> None:
    master, slave = filled(5), opened("SLAVE")
    slave.health.fail(DiskError("the disk is gone"))
    with pytest.raises(StoreError, match="the disk is gone"):
        slave.role.receive(stream(master.log))
    assert slave.log.end == 0


@pytest.mark.parametrize("start", [0, SIZE])
def test_a_log_may_have_a_file_and_no_record(start: int) -> None:
    """A process that died between the two, or a power loss, leaves that."""
    master, disk = filled(), RecordedDisk()
    slave = opened("SLAVE", disk=disk)
    slave.log.make_room(100)
    slave.abandon()
    slave = opened("SLAVE", disk=disk)
    assert slave.log.segments
    slave.role.begin_at(start)
    slave.role.receive(stream(master.log, start))
    assert stream(slave.log, start) == stream(master.log, start)
    slave.close()
    again = opened("SLAVE", disk=disk)
    assert again.log.end == master.log.end
    with pytest.raises(StoreError, match="not empty"):
        again.role.begin_at(0)
