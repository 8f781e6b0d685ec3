"""The epochs of a log, and the brokers that may be elected."""

from __future__ import annotations

import pytest

from mqlake.errors import StoreError
from mqlake.formats.epoch_file import BACKUP, MOST_EPOCHS, NAME, Epoch
from mqlake.store import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.replication.cut_log import cut_log
from mqlake.store.replication.epochs import Epochs, common_end
from mqlake.store.replication.in_sync_set import InSyncSet
from tests.crash.disk import RecordedDisk
from tests.store.appending import SetClock
from tests.store.replication.test_received_log import SIZE, opened, stream

A, B, C = Epoch(1, 0), Epoch(2, 500), Epoch(4, 900)


def test_epochs_survive_a_restart() -> None:
    disk = RecordedDisk()
    epochs = Epochs(disk)
    epochs.begin(1, 0, 0)
    epochs.append(B)
    epochs.begin(4, 0, 900)
    assert Epochs(disk).all == epochs.all == (A, B, C)
    assert [epochs.at(each) for each in (0, 499, 500, 900, 5000)] == [A, A, B, C, C]
    assert [epochs.end_of(each) for each in (A, B, C)] == [500, 900, None]
    epochs.cut(900)
    assert Epochs(disk).all == (A, B)
    epochs.cut(0)
    assert Epochs(disk).all == ()


def test_an_epoch_without_records_is_removed() -> None:
    epochs = Epochs(RecordedDisk())
    epochs.begin(1, 0, 0)
    epochs.append(B)
    epochs.begin(3, 0, 500)
    assert epochs.all == (A, Epoch(3, 500))


def test_a_master_that_was_away_goes_on_in_its_epoch() -> None:
    epochs = Epochs(RecordedDisk())
    epochs.begin(1, 0, 0)
    epochs.begin(2, 0, 500)
    epochs.begin(2, 0, 900)
    assert epochs.all == (A, B)


def test_the_epochs_of_an_empty_log_stay() -> None:
    epochs, follower = Epochs(RecordedDisk()), Epochs(RecordedDisk())
    epochs.begin(1, 0, 0)
    epochs.begin(2, 0, 0)
    assert epochs.all == (A, Epoch(2, 0))
    assert epochs.at(0) == Epoch(2, 0)
    for each in epochs.all:
        follower.append(each)
    assert follower.all == epochs.all
    for each in (epochs, follower):
        each.begin(4, 0, 900)
        assert each.all == (A, Epoch(2, 0), C)


def test_what_two_masters_wrote_into_an_empty_log_is_not_the_same() -> None:
    one, two = Epochs(RecordedDisk()), Epochs(RecordedDisk())
    one.begin(1, 0, 0)
    two.append(A)  # of a heartbeat
    two.begin(2, 0, 0)
    assert common_end(one.all, 100, two.all, 200) == 0


def test_the_first_epoch_begins_with_the_log() -> None:
    epochs = Epochs(RecordedDisk())
    epochs.begin(5, 100, 900)
    assert epochs.all == (Epoch(5, 100),)


def test_an_epoch_that_does_not_follow_the_last_one_is_refused() -> None:
    epochs = Epochs(RecordedDisk())
    epochs.append(B)
    for wrong in (Epoch(2, 600), Epoch(1, 600), Epoch(3, 400)):
        with pytest.raises(StoreError, match="after epoch 2"):
            epochs.append(wrong)


def test_only_the_newest_epochs_are_kept() -> None:
    disk = RecordedDisk()
    many = [Epoch(number, number) for number in range(MOST_EPOCHS + 5)]
    Epochs(disk).adopt(many, len(many))
    assert Epochs(disk).all == tuple(many[5:])


def test_a_damaged_file_has_a_backup() -> None:
    disk = RecordedDisk()
    epochs = Epochs(disk)
    for kept in ((A,), (A, B)):  # the first ones, too
        epochs.append(kept[-1])
        damage(disk, NAME)
        assert Epochs(disk).all == kept
    damage(disk, BACKUP)
    with pytest.raises(StoreError, match="no valid backup"):
        Epochs(disk)


def damage(disk: RecordedDisk, name: str) -> None:
    file = disk.open_writable(name)
    file.write(0, b"x")
    file.close()


@pytest.mark.parametrize(
    ("own", "own_end", "other", "other_end", "expected"),
    [
        ((A,), 300, (A,), 400, 300),
        ((A, B), 700, (A,), 600, 500),
        ((A, B), 700, (A, Epoch(3, 450)), 800, 450),
        ((A, B), 700, (A, B, C), 1200, 700),
        ((A, B), 950, (A, B, C), 1200, 900),
        ((A,), 300, (Epoch(1, 10),), 300, None),
        ((), 0, (A,), 10, None),
    ],
)
def test_common_end_of_two_logs(
    own: tuple[Epoch, ...],
    own_end: int,
    other: tuple[Epoch, ...],
    other_end: int,
    expected: int | None,
) -> None:
    assert common_end(own, own_end, other, other_end) == expected
    assert common_end(other, other_end, own, own_end) == expected


# The in-sync set


def test_a_member_holds_up_what_is_confirmed() -> None:
    members = InSyncSet(1)
    members.set((1, 2), 2)
    assert members.update({2: 50}, 90) == 50
    assert members.update({}, 120) == 50  # it is gone, and a member until the controller says so
    members.ask({1})
    assert members.update({}, 120) == 50
    assert members.set((1,), 3, is_answer=True)
    assert members.update({}, 120) == 120


def test_a_slave_that_joins_counts_before_it_is_a_member() -> None:
    members = InSyncSet(1)
    assert members.update({}, 100) == 100
    members.join(2)
    assert members.update({2: 90}, 150) == 100
    assert not members.ready({2: 90})
    assert members.ready({2: 100}) == {2}
    members.leave(2)
    assert members.update({}, 150) == 150


def test_the_old_and_the_new_set_count_until_the_answer_is_known() -> None:
    members = InSyncSet(1)
    members.set((1, 2), 2)
    members.ask({1, 3})
    assert members.counted == {2, 3}
    assert members.is_uncertain
    assert not members.set((1, 2), 2)  # as it was before: the request may still be under way
    assert members.counted == {2, 3}
    assert members.set((1, 3), 3)
    assert members.counted == {3}
    assert not members.set((1, 2), 2)  # an old answer


# Cutting a closed log


def test_a_log_is_cut_and_what_follows_from_it_too() -> None:
    disk = RecordedDisk()
    store = opened(disk=disk)
    ends = [fill(store, 40), fill(store, 40)]
    store.close()
    cut_log(disk, ends[0], SIZE, SetClock())
    cut_log(disk, ends[0], SIZE, SetClock())  # once more, as after a crash
    again = opened("SLAVE", disk=disk)
    assert again.log.end == again.watermarks.dispatched == ends[0]
    assert [again.queues.max_offset(f"Topic{number}", 0) for number in range(2)] == [20, 20]
    assert disk.names("commitlog-cut")
    other = opened()
    fill(other, 45)
    again.role.receive(stream(other.log, again.log.end))
    again.tick()
    assert stream(again.log) == stream(other.log)
    with pytest.raises(StoreError, match="owns"):
        cut_log(disk, 0, SIZE, SetClock())


def test_a_log_is_cut_just_before_the_end_of_a_file() -> None:
    """What was durable at the last checkpoint ended there: after the blank record."""
    master, disk = opened(), RecordedDisk()
    last = 0
    while master.log.end < SIZE:
        last = master.log.end
        fill(master, 1)
    slave = opened("SLAVE", disk=disk)
    slave.role.receive(stream(master.log)[:SIZE])
    slave.close()
    cut_log(disk, last, SIZE, SetClock())
    assert opened("SLAVE", disk=disk).log.end == last < SIZE


def test_a_log_is_not_cut_where_it_is_not() -> None:
    disk = RecordedDisk()
    opened(disk=disk).close()
    with pytest.raises(StoreError, match="cannot be cut"):
        cut_log(disk, 1 << 40, SIZE, SetClock())


def fill(store: OwnedStore, count: int) -> int:
    for number in range(count):
        assert store.puts.put(Message(f"Topic{number % 2}", b"x" * 300, keys=f"k{number}")).is_ok
    return store.log.end
