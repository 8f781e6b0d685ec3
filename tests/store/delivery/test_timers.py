"""Timer messages: delivered when their slot is over, once at least, whatever happens between."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.errors import DiskError, FormatError
from mqlake.formats import timer_checkpoint, timer_log
from mqlake.formats.properties import UNIQ_KEY
from mqlake.formats.timer_checkpoint import TimerCheckpoint
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.delivery.timer_messages import TIMER_TOPIC
from mqlake.store.live_settings import LiveSettings
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import BrokerRole, StoreSettings
from tests.crash.clock import ManualClock
from tests.store.live_parts import NOW

SECOND, DAY = 1000, 24 * 60 * 60 * 1000
FEW = StoreSettings(
    mapped_file_size_commit_log=1 << 20,
    max_hash_slot_num=100,
    max_index_num=400,
    mapped_file_size_timer_log=1 << 16,
)
STATE = "config/timercheck"


class Timed:
    """A store with a clock that is moved by hand."""

    def __init__(self, path: Path, settings: StoreSettings = FEW) -> None:
        self.path, self.settings, self.clock = path, settings, ManualClock(NOW)
        self.store = self._open()

    def _open(self) -> OwnedStore:
        return OwnedStore.open(LocalOwnedDirectory.make(self.path), self.settings, self.clock)

    def send(self, body: str, **properties: object) -> PutResult:
        pairs = {name: str(value) for name, value in properties.items()}
        result = self.store.puts.put(Message("T", body.encode(), properties=pairs, queue_id=2))
        self.store.tick()
        return result

    def after(self, milliseconds: int) -> None:
        """Let time pass, and the store do what falls due."""
        self.clock.forward(milliseconds)
        for _ in range(3):
            while (job := self.store.services.due()) is not None:
                job.run()
                job.done()
            self.store.tick()
            self.clock.forward(100)

    @property
    def bodies(self) -> list[str]:
        found = self.store.reads.get("T", 2, 0, 1000, max_bytes=1 << 24)
        return [record.body.decode() for record in found.records]

    def restart(self) -> None:
        self.store.close()
        self.store = self._open()

    def crash(self) -> None:
        self.store.abandon()
        self.store = self._open()

    def file(self, name: str) -> bytes:
        return (self.path / name).read_bytes()


@pytest.fixture
def timed(tmp_path: Path) -> Timed:
    return Timed(tmp_path)


@pytest.mark.parametrize(
    "when",
    [
        {"TIMER_DELIVER_MS": NOW + 5 * SECOND},
        {"TIMER_DELAY_MS": 5 * SECOND},
        {"TIMER_DELAY_SEC": 5},
        {"TIMER_DELAY_SEC": 5, "TIMER_DELAY_MS": 1, "TIMER_DELIVER_MS": 1},
    ],
)
def test_delivered_when_due_not_before(timed: Timed, when: dict[str, int]) -> None:
    assert timed.send("a", TAGS="red", **when).is_ok
    timed.after(4 * SECOND)
    assert timed.bodies == []
    timed.after(1 * SECOND)
    assert timed.bodies == ["a"]
    (record,) = timed.store.reads.get("T", 2, 0).records
    assert record.tags == "red"
    assert "REAL_TOPIC" not in record.properties
    assert record.properties["TIMER_OUT_MS"] == str(NOW + 4 * SECOND)
    assert int(record.properties["TIMER_DEQUEUE_MS"]) >= NOW + 5 * SECOND


def test_waits_in_the_topic_of_timers(timed: Timed) -> None:
    timed.send("a", TIMER_DELAY_MS=1500)
    (record,) = timed.store.reads.get(TIMER_TOPIC, 0, 0).records
    assert (record.properties["REAL_TOPIC"], record.properties["REAL_QID"]) == ("T", "2")
    assert record.properties["TIMER_OUT_MS"] == str(NOW + SECOND)
    timed.after(0)
    assert timed.store.timers.waiting == 1
    assert timed.store.timers.waiting_in(NOW + SECOND) == 1
    assert timed.store.timers.next_due() == NOW + 2 * SECOND


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        ({"TIMER_DELIVER_MS": "soon"}, PutStatus.WHEEL_TIMER_MSG_ILLEGAL),
        ({"TIMER_DELAY_SEC": 3 * 24 * 3600 + 1}, PutStatus.WHEEL_TIMER_MSG_ILLEGAL),
        ({"TIMER_DELIVER_MS": 5, "TIMER_DEL_UNIQKEY": "x"}, PutStatus.WHEEL_TIMER_MSG_ILLEGAL),
    ],
)
def test_invalid_delivery_times_are_refused(
    timed: Timed, pairs: dict[str, object], status: PutStatus
) -> None:
    assert timed.send("a", **pairs).status is status
    message = Message("T", b"a", properties={name: str(value) for name, value in pairs.items()})
    results = timed.store.puts.put_many([Message("T", b"1"), message, Message("T", b"2")])
    assert [result.status for result in results] == [PutStatus.PUT_OK, status, PutStatus.PUT_OK]


def test_timers_are_refused_if_they_are_disabled(tmp_path: Path) -> None:
    timed = Timed(tmp_path, StoreSettings(timer_wheel_enable=False))
    assert timed.send("a", TIMER_DELAY_MS=5).status is PutStatus.WHEEL_TIMER_NOT_ENABLE


def test_a_past_delivery_time_is_delivered_at_once(timed: Timed) -> None:
    timed.send("past", TIMER_DELIVER_MS=NOW - 1)
    timed.send("again", TIMER_DELIVER_MS=NOW + SECOND, TIMER_OUT_MS=NOW)
    assert timed.bodies == ["past", "again"]


def test_a_delay_level_counts_before_a_time(timed: Timed) -> None:
    timed.send("a", DELAY=1, TIMER_DELAY_MS=60 * SECOND)
    timed.after(2 * SECOND)
    assert timed.bodies == ["a"]


def test_delivered_in_the_order_of_their_times(timed: Timed) -> None:
    for number in (5, 3, 9, 1, 3):
        timed.send(str(number), TIMER_DELAY_SEC=number)
    timed.after(20 * SECOND)
    assert timed.bodies == ["1", "3", "3", "5", "9"]


def test_a_clean_stop_repeats_nothing(timed: Timed) -> None:
    timed.send("late", TIMER_DELAY_SEC=60)
    timed.send("soon", TIMER_DELAY_SEC=2)
    timed.after(5 * SECOND)
    timed.restart()
    timed.after(5 * SECOND)
    assert timed.bodies == ["soon"]
    timed.restart()
    timed.after(60 * SECOND)
    assert timed.bodies == ["soon", "late"]
    assert timed.store.timers.dropped == 0


def test_a_crash_loses_nothing(timed: Timed) -> None:
    timed.send("late", TIMER_DELAY_SEC=60)
    timed.send("soon", TIMER_DELAY_SEC=2)
    timed.crash()
    timed.after(5 * SECOND)
    timed.crash()
    timed.after(60 * SECOND)
    assert timed.bodies[:1] == ["soon"]
    assert set(timed.bodies) == {"soon", "late"}
    timed.after(15 * SECOND)
    timed.crash()
    before = timed.bodies
    timed.after(60 * SECOND)
    assert timed.bodies == before


def test_the_position_waits_for_the_log(timed: Timed) -> None:
    """What is not on the disk was not delivered."""
    timed.send("a", TIMER_DELAY_SEC=1)
    timed.store.durability.sync_log()
    timed.clock.forward(3 * SECOND)
    timed.store.timers.deliver()
    timed.store.timers.keep()
    flush = timed.store.timers.file_service()
    assert flush.start() is None
    timed.store.durability.sync_log()
    timed.store.timers.keep()
    assert flush.start() is not None


def test_put_again_before_retention_removes_it(tmp_path: Path) -> None:
    timed = Timed(tmp_path)
    timed.send("far", TIMER_DELIVER_MS=NOW + 3 * DAY - 5, UNIQ_KEY="u")
    timed.after(DAY - 10 * SECOND)
    assert timed.store.queues.max_offset(TIMER_TOPIC, 0) == 1
    timed.after(20 * SECOND + DAY)
    assert timed.store.queues.max_offset(TIMER_TOPIC, 0) == 2
    _, copy = timed.store.reads.get(TIMER_TOPIC, 0, 0).records
    assert copy.properties["TIMER_ROLL_TIMES"] == "1"
    timed.crash()
    timed.after(DAY // 2)
    assert timed.store.queues.max_offset(TIMER_TOPIC, 0) == 2
    assert timed.bodies == []
    timed.after(DAY)
    assert timed.bodies == ["far"]


@pytest.mark.parametrize("form", ["u1", "T+u1"])
def test_a_timer_delete_message_cancels_the_delivery(timed: Timed, form: str) -> None:
    when = NOW + 9 * SECOND
    timed.send("a", TIMER_DELIVER_MS=when, **{UNIQ_KEY: "u1"})
    timed.send("b", TIMER_DELIVER_MS=when, **{UNIQ_KEY: "u2"})
    timed.send("0", TIMER_DELIVER_MS=when, TIMER_DEL_UNIQKEY=form, **{UNIQ_KEY: "u1"})
    timed.after(1 * SECOND)
    timed.restart()
    timed.after(20 * SECOND)
    assert timed.bodies == ["b"]
    assert timed.store.timers.waiting == 0


def test_a_message_that_is_not_taken_is_tried_again(timed: Timed) -> None:
    timed.send("a", TIMER_DELAY_SEC=1)
    timed.after(0)
    timed.store._appender.set_not_writable("full")  # pyright: ignore[reportPrivateUsage]
    timed.clock.forward(5 * SECOND)
    assert timed.store.timers.deliver() == 0
    timed.store._appender.set_not_writable(None)  # pyright: ignore[reportPrivateUsage]
    assert timed.store.timers.deliver() == 1


# What RocketMQ finds, and leaves


def test_a_clean_stop_leaves_a_timer_log_for_rocketmq(timed: Timed) -> None:
    results = [timed.send(str(n), TIMER_DELAY_SEC=n) for n in (60, 2, 60, 2)]
    timed.after(5 * SECOND)
    timed.store.close()
    units = list(timer_log.decode(timed.file("timerlog/00000000000000000000")))
    *waiting, last = units
    slot = NOW + 59 * SECOND
    assert [(unit.slot, unit.physical_offset) for unit in waiting] == [
        (slot, results[0].physical_offset),
        (slot, results[2].physical_offset),
    ]
    assert last.physical_offset == results[3].physical_offset
    assert last.slot < slot
    fields, position = timer_checkpoint.decode(timed.file(STATE))
    assert fields.last_log_position == 3 * timer_log.UNIT_SIZE
    assert fields.last_queue_offset == fields.master_queue_offset == 4
    assert position is not None
    assert position.first_waiting == 0


def test_while_it_is_open_rocketmq_would_begin_at_the_first_that_waits(timed: Timed) -> None:
    timed.send("done", TIMER_DELAY_SEC=1)
    timed.send("waits", TIMER_DELAY_SEC=60)
    timed.after(5 * SECOND)
    timed.restart()
    assert not (timed.path / "timerlog").exists()
    fields, _ = timer_checkpoint.decode(timed.file(STATE))
    assert fields[1:4] == (0, 1, 1)


def test_continues_at_the_timer_checkpoint_of_rocketmq(timed: Timed) -> None:
    """RocketMQ says up to which slot it has read, and up to which queue offset it has taken in."""
    for number in (2, 60, 4, 70):
        timed.send(str(number), TIMER_DELAY_SEC=number)
    timed.store.close()
    fields = TimerCheckpoint(NOW + 3 * SECOND, 0, 2, 2)
    (timed.path / STATE).parent.mkdir(exist_ok=True)
    page = b"".join(value.to_bytes(8, "big") for value in fields)
    (timed.path / STATE).write_bytes(page.ljust(4096, b"\0"))
    (timed.path / "timerwheel").write_bytes(b"\0" * 100)
    timed.store = OwnedStore.open(LocalOwnedDirectory.make(timed.path), FEW, timed.clock)
    assert not (timed.path / "timerwheel").exists()
    timed.after(100 * SECOND)
    assert timed.bodies == ["4", "60", "70"]


@pytest.mark.parametrize("data", [b"", b"x", b"\xff" * 4096, b"\0" * 4096])
def test_damaged_timer_checkpoints_lose_no_message(timed: Timed, data: bytes) -> None:
    timed.send("a", TIMER_DELAY_SEC=20)
    timed.after(2 * SECOND)
    timed.store.close()
    (timed.path / STATE).write_bytes(data)
    timed.store = OwnedStore.open(LocalOwnedDirectory.make(timed.path), FEW, timed.clock)
    timed.after(25 * SECOND)
    assert timed.bodies == ["a"]


# Anything may come in between

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 20_000)),
        st.tuples(st.just("after"), st.integers(0, 8_000)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("crash"), st.just(0)),
    ),
    max_size=15,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STEPS)
def test_nothing_is_lost_and_nothing_repeated_without_a_crash(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    timed = Timed(tmp_path_factory.mktemp("timed"))
    due: dict[str, int] = {}
    for number, (what, value) in enumerate(steps):
        if what == "send":
            due[str(number)] = timed.clock.milliseconds() + value
            timed.send(str(number), TIMER_DELAY_MS=value)
        elif what == "after":
            timed.after(value)
        else:
            timed.restart() if what == "restart" else timed.crash()
        early = [body for body in timed.bodies if due[body] > timed.clock.milliseconds()]
        assert not early
    timed.after(25_000)
    assert set(timed.bodies) == set(due)
    if "crash" not in dict(steps):
        assert len(timed.bodies) == len(due)
    timed.store.close()


def test_a_slaves_store_goes_on_where_its_masters_was(tmp_path: Path) -> None:
    """It has the master's log and checkpoint, and delivers only once it is a master."""
    master = Timed(tmp_path / "master")
    master.send("first", TIMER_DELAY_SEC=1)
    master.send("second", TIMER_DELAY_SEC=3600)
    master.after(3 * SECOND)
    assert master.bodies == ["first"]
    master.store.durability.sync_log()
    master.after(3 * SECOND)
    checkpoint = master.store.timers.checkpoint()
    assert len(checkpoint) == timer_checkpoint.USED
    master.store.close()
    shutil.copytree(tmp_path / "master" / "commitlog", tmp_path / "slave" / "commitlog")

    settings = msgspec.structs.replace(FEW, broker_role=BrokerRole.SLAVE)
    slave = Timed(tmp_path / "slave", settings)
    slave.clock.forward(2 * 3600 * SECOND)
    slave.after(2 * SECOND)
    assert slave.bodies == ["first"]
    slave.store.timers.follow(checkpoint)
    slave.after(2 * SECOND)
    assert slave.bodies == ["first"]
    slave.store.close()
    assert slave.file(STATE)[: timer_checkpoint.USED] == checkpoint
    live = LiveSettings(settings)
    slave.store = OwnedStore.open(LocalOwnedDirectory.make(slave.path), live, slave.clock)
    slave.after(2 * SECOND)
    live.switch(FEW)
    slave.after(2 * SECOND)
    slave.after(2 * SECOND)
    assert slave.bodies == ["first", "second"]


def test_a_checkpoint_of_rocketmq_is_followed(tmp_path: Path) -> None:
    """Releases before 5 send four numbers, without the version of the data."""
    fields = TimerCheckpoint(NOW, 52, 3, 3)
    for data in (struct.pack(">7q", *fields), struct.pack(">4q", *fields[:4])):
        slave = Timed(tmp_path / str(len(data)), msgspec.structs.replace(FEW))
        slave.store.timers.follow(data)
        found, position = timer_checkpoint.decode(slave.store.timers.checkpoint())
        assert position is not None
        assert (position.done_before, position.taken_in) == (NOW, 3)
        assert found.last_read_time == NOW
        with pytest.raises(FormatError):
            slave.store.timers.follow(data[:-1])


def test_a_timer_log_that_cannot_be_written_leaves_the_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed, create = Timed(tmp_path), LocalOwnedDirectory.create
    for body, seconds in (("early", 2), ("late", 3600)):
        timed.send(body, TIMER_DELIVER_MS=timed.clock.milliseconds() + seconds * SECOND)
    timed.after(5 * SECOND)

    def full(directory: LocalOwnedDirectory, path: str, size: int) -> object:
        if "timerlog" in path:
            raise DiskError(f"{path}: No space left on device")
        return create(directory, path, size)

    monkeypatch.setattr(LocalOwnedDirectory, "create", full)
    with pytest.raises(DiskError, match="No space left"):
        timed.store.close()
    monkeypatch.undo()
    again = Timed(tmp_path)
    again.clock.forward(10 * SECOND)
    again.after(5 * SECOND)
    assert [record.body for record in again.store.reads.get("T", 2, 0, 10).records] == [b"early"]
    again.store.close()
