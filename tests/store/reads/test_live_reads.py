"""Reading a live store: forms, limits, tags, segments that end and go, what may be read when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.dispatch.arrow import SCHEMA
from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.java_string import hash_code
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reads import warm_up
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock

SMALL = {
    "mapped_file_size_commit_log": 4096,
    "mapped_file_size_consume_queue": 200,
    "max_hash_slot_num": 16,
    "max_index_num": 64,
}
Open = Callable[..., OwnedStore]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    stores: list[OwnedStore] = []

    def open_store(**changed: object) -> OwnedStore:
        directory = LocalOwnedDirectory(tmp_path)
        stores.append(OwnedStore.open(directory, StoreSettings(**(SMALL | changed)), ManualClock()))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def put(store: OwnedStore, count: int, topic: str = "T", **fields: object) -> None:
    for number in range(count):
        tag = ("red", "green", None)[number % 3]
        message = Message(topic, b"body %d" % number, tags=tag, keys=f"k{number}", **fields)
        assert store.puts.put(message).physical_offset >= 0
    store.tick()


def bodies(result: LiveGetResult) -> list[bytes]:
    return [one.body for one in result.records]


def test_heads_and_bytes_of_single_messages(opened: Open) -> None:
    store = opened()
    assert store.reads.index_end == (0, 0)
    put(store, 50)
    records = store.reads.get("T", 0, 0, 50).records
    for one in (records[0], records[49]):
        head = store.reads.head_from("T", 0, one.queue_offset)
        assert head is not None
        assert (head.physical_offset, head.store_timestamp) == (
            one.physical_offset,
            one.store_timestamp,
        )
        raw = store.reads.raw_at(one.physical_offset)
        assert raw is not None
        assert record.decode(raw) == one
    assert store.reads.head_from("T", 0, 50) is None
    assert store.reads.head_from("U", 0, 0) is None
    for offset in (-1, 1, records[49].physical_offset + 1, store.log.end, 1 << 62):
        assert store.reads.raw_at(offset) is None
    assert store.reads.index_end == (records[49].store_timestamp, records[49].physical_offset)


def test_all_forms_have_the_same_messages_over_segments(opened: Open) -> None:
    store = opened()
    put(store, 100)
    assert len(store.log.segments) > 2
    result = store.reads.get("T", 0, 3, 90)
    assert (result.status, result.next_offset, len(result)) == ("FOUND", 93, 90)
    assert bodies(result) == [b"body %d" % number for number in range(3, 93)]
    assert [record.decode(raw) for raw in result.raw] == result.records
    assert result.size == sum(one.size for one in result.records)
    batch = result.to_arrow()
    batch.validate(full=True)
    assert batch.schema == SCHEMA
    assert batch.column("body").to_pylist() == bodies(result)
    assert batch.column("queueOffset").to_pylist() == list(range(3, 93))
    assert not result.skipped


def test_statuses_of_reads_without_messages(opened: Open) -> None:
    store = opened()
    put(store, 5)
    get = store.reads.get
    assert get("T", 0, 5).status == "OFFSET_OVERFLOW_ONE"
    assert (get("T", 0, 7).status, get("T", 0, 7).next_offset) == ("OFFSET_OVERFLOW_BADLY", 5)
    assert (get("T", 0, -1).status, get("T", 0, -1).next_offset) == ("OFFSET_TOO_SMALL", 0)
    for topic, queue_id in (("T", 1), ("U", 0)):
        nothing = get(topic, queue_id, 3)
        assert (nothing.status, nothing.next_offset) == ("NO_MESSAGE_IN_QUEUE", 0)
        assert (nothing.records, nothing.raw, len(nothing), nothing.size) == ([], [], 0, 0)
        assert nothing.to_arrow().num_rows == 0
    unmatched = get("T", 0, 0, tags="blue")
    assert (unmatched.status, unmatched.next_offset) == ("NO_MATCHED_MESSAGE", 5)
    for topic in ("", "../x", "a/b", "\0"):
        with pytest.raises(FormatError):
            get(topic, 0, 0)


def test_limits_of_messages_and_bytes(opened: Open) -> None:
    store = opened(max_transfer_bytes_on_message_in_memory=1000)
    put(store, 40)
    sizes = [len(raw) for raw in store.reads.get("T", 0, 0, 40, max_bytes=1 << 20).raw]
    assert len(sizes) == 40
    assert len(store.reads.get("T", 0, 0)) == len(store.reads.get("T", 0, 0, 40))
    assert (
        store.reads.get("T", 0, 0).size <= 1000 < sum(sizes[: len(store.reads.get("T", 0, 0)) + 1])
    )
    assert len(store.reads.get("T", 0, 0, 7)) == 7
    assert len(store.reads.get("T", 0, 0, 7, max_bytes=sizes[0] + sizes[1])) == 2
    for least in (0, -5):
        one = store.reads.get("T", 0, 0, least, max_bytes=least)
        assert (len(one), one.next_offset) == (1, 1)


def test_a_read_looks_at_a_bounded_number_of_entries(opened: Open) -> None:
    store = opened(max_filter_message_size=20 * 12)
    put(store, 50)
    store.puts.put(Message("T", b"the one", tags="blue"))
    store.tick()
    at, reads = 0, 0
    while not (result := store.reads.get("T", 0, at, 12, tags="blue")).records:
        assert (result.status, result.next_offset) == ("NO_MATCHED_MESSAGE", at + 12)
        at, reads = result.next_offset, reads + 1
    assert (bodies(result), reads, result.next_offset) == ([b"the one"], 4, 51)


def test_what_is_far_behind_is_brought_into_memory(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "NEAR", 2000)
    asked: list[int] = []
    monkeypatch.setattr(warm_up, "is_in_memory", lambda address, size: bool(asked.append(size)))
    store = opened(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=20_000)
    reads = store.reads
    assert reads.warm_up("T", 0, 0) is None, "no such queue"
    put(store, 900)
    assert reads.warm_up("T", 0, 900) is None
    assert reads.warm_up("T", 0, 890) is None, "just written"
    assert not asked
    job = reads.warm_up("T", 0, 0)
    assert job is not None
    job()
    assert reads.warm_up("T", 0, 200) is None, "looked after together"
    assert reads.warm_up("T", 0, 230) is not None
    assert reads.warm_up("T", 0, 0, tags="red") is not None
    assert reads.warm_up("T", 0, 700, tags="red") is not None
    monkeypatch.setattr(warm_up, "is_in_memory", lambda address, size: True)
    assert reads.warm_up("T", 0, 0) is None
    assert bodies(reads.get("T", 0, 0, 3)) == [b"body 0", b"body 1", b"body 2"]
    put(store, 900)
    assert reads.warm_up("T", 0, 890) is None
    monkeypatch.setattr(warm_up, "is_in_memory", lambda address, size: False)
    assert reads.warm_up("T", 0, 650) is not None, "no longer just written"


def test_messages_in_memory_are_looked_at_together_and_those_on_disk_are_read_in_parts(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "NEAR", 2000)
    answers: list[bool] = []
    asked: list[bool] = []

    def is_in_memory(address: int, size: int) -> bool:
        asked.append(answers.pop(0) if answers else True)
        return asked[-1]

    monkeypatch.setattr(warm_up, "is_in_memory", is_in_memory)
    store = opened(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=60_000)
    put(store, 2900)
    reads = store.reads
    assert reads.warm_up("T", 0, 0) is None
    assert len(asked) == 9
    assert reads.warm_up("T", 0, 2000) is None
    assert len(asked) == 9, "known to be in memory"
    assert reads.warm_up("T", 0, 2040) is None
    assert len(asked) == 9 + 5, "the file's rest"
    # Its sample has a message on the disk, but not among the first ones, which are served.
    answers[:] = [True, True, False]
    assert reads.warm_up("T", 0, 10) is None
    assert asked[-5:] == [True, True, False, True, True]
    answers[:] = [False, False]
    job = reads.warm_up("T", 0, 250)
    assert job is not None
    job()
    assert reads.warm_up("T", 0, 450) is None, "read by the job"
    count = len(asked)
    assert reads.warm_up("T", 0, 490) is None
    assert len(asked) > count, "the job has read no further"


def test_tags_whose_hashes_are_the_same(opened: Open) -> None:
    assert hash_code("Aa") == hash_code("BB")
    store = opened()
    for number in range(30):
        store.puts.put(Message("T", b"%d" % number, tags=("Aa", "BB")[number % 2]))
    store.tick()
    found = store.reads.get("T", 0, 0, 9, tags="BB")
    assert bodies(found) == [b"%d" % number for number in range(1, 18, 2)]
    assert found.next_offset == 18
    assert found.to_arrow().column("tags").to_pylist() == ["BB"] * 9
    assert len(store.reads.get("T", 0, 0, 9, tags="BB", exact=False)) == 9
    assert store.reads.get("T", 0, 0, 9, tags="BB", exact=False).next_offset == 9


def test_scheduled_messages_are_chosen_by_their_records(opened: Open) -> None:
    """The tags code of their entries is the time of delivery."""
    store = opened()
    for number in range(4):
        tag = ("red", "green")[number % 2]
        store.puts.put(Message("T", b"%d" % number, tags=tag, delay_level=3))
    store.tick()
    (queue_id,) = store.reads.queues("SCHEDULE_TOPIC_XXXX")
    assert bodies(store.reads.get("SCHEDULE_TOPIC_XXXX", queue_id, 0, tags="red")) == [b"0", b"2"]


def test_messages_outlive_their_file(opened: Open, tmp_path: Path) -> None:
    store = opened()
    put(store, 100)
    before = store.reads.get("T", 0, 0, 100)
    raw, first = before.raw[0], before.raw[0].tobytes()
    removed = store.log.remove_first()
    assert removed is not None
    assert not (tmp_path / removed.path).exists()
    store.queues.trim(store.log.min_offset)
    assert raw == first
    assert len(before.records) == before.to_arrow().num_rows == 100
    low = store.reads.queue("T", 0).min_offset
    assert low > 0
    assert store.reads.get("T", 0, 0).status == "OFFSET_TOO_SMALL"
    assert store.reads.get("T", 0, 0).next_offset == low
    assert bodies(store.reads.get("T", 0, low, 1)) == [b"body %d" % low]
    assert store.reads.record_at(0) is None


def test_entries_of_messages_that_were_just_removed(opened: Open) -> None:
    """The log is trimmed first, and the queues after it."""
    store = opened(max_filter_message_size=20 * 3)
    put(store, 100)
    segment = store.log.remove_first()
    assert segment is not None
    gone = store.reads.get("T", 0, 0, 3)
    assert (gone.status, gone.next_offset, gone.skipped) == ("MESSAGE_WAS_REMOVING", 3, [])
    left = store.reads.get("T", 0, 0, 100)
    assert (left.status, left.next_offset, left.skipped) == ("FOUND", 100, [])
    assert left.records[0].physical_offset == segment.end


def test_a_missing_queue_file(opened: Open, tmp_path: Path) -> None:
    """What the other files have is read; where one is gone, reading goes on behind it."""
    store = opened()
    put(store, 35)
    queue = store.queues.queue("T", 0)
    queue.bases.remove(400)
    part = store.reads.get("T", 0, 15, 30)
    assert (part.status, part.next_offset) == ("FOUND", 20)
    assert bodies(part) == [b"body %d" % number for number in range(15, 20)]
    null = store.reads.get("T", 0, 21, 30)
    assert (null.status, null.next_offset, len(null)) == ("OFFSET_FOUND_NULL", 30, 0)
    assert store.reads.get("T", 0, 30, 30).next_offset == 35
    assert len(store.reads.by_time_range("T", 0, 1 << 60).records) == 25


def test_nothing_unflushed_is_served_under_sync_flush(opened: Open) -> None:
    store = opened(flush_disk_type=FlushDiskType.SYNC_FLUSH)
    put(store, 3)
    reads = store.reads
    assert reads.get("T", 0, 0).status == "NO_MESSAGE_IN_QUEUE"
    assert reads.record_at(0) is None
    assert reads.by_key("T", "k1").records == []
    assert reads.by_time_range("T", 0, 1 << 60).records == []
    store.durability.sync_log()
    assert len(reads.get("T", 0, 0)) == 3
    put(store, 1)
    assert reads.get("T", 0, 3).status == "OFFSET_OVERFLOW_ONE"
    assert len(reads.by_key("T", "k0").records) == 1


def test_searches_see_what_is_not_dispatched_yet(opened: Open) -> None:
    store = opened()
    put(store, 90)
    position = store.dispatcher.position
    last = store.puts.put(Message("T", b"new", keys="k7 fresh", properties={"UNIQ_KEY": "U"}))
    at = last.physical_offset
    assert store.dispatcher.position == position <= at
    reads = store.reads
    assert [one.body for one in reads.by_key("T", "k7").records] == [b"body 7", b"new"]
    assert [one.body for one in reads.by_key("T", "fresh").records] == [b"new"]
    assert reads.by_unique_key("T", "U") == reads.record_at(at)
    assert store.dispatcher.position == position
    assert reads.by_key("U", "k7").records == []
    assert reads.by_time_range("T", 0, 1 << 60, 1000).records[-1].physical_offset == at
    assert reads.offset_by_time("T", 0, 1 << 60) == 91


@pytest.mark.parametrize("enabled", [True, False])
def test_keys_with_and_without_an_index(opened: Open, enabled: bool) -> None:
    store = opened(message_index_enable=enabled)
    put(store, 300, topic="T")
    put(store, 20, topic="U")
    for number in (0, 150, 299):
        (found,) = store.reads.by_key("T", f"k{number}").records
        assert found.body == b"body %d" % number
    assert len(store.reads.by_key("T", "k5", index_type="T").records) == 0
    assert len(store.reads.by_key("T", "red", max=1000, index_type="T").records) == 100
    assert store.reads.by_key("T", "red", max=9, index_type="T").truncated


def test_messages_without_keys_behind_the_index_are_not_scanned(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    put(store, 3)
    for _ in range(50):
        store.puts.put(Message("T", b"no key"))
    store.tick()
    monkeypatch.setattr("mqlake.store.index.key_query.KeyScan.offsets", None)
    assert len(store.reads.by_key("T", "k1").records) == 1


def test_topics_and_queues(opened: Open) -> None:
    store = opened()
    put(store, 3, topic="B", queue_id=5)
    put(store, 1, topic="B", queue_id=2)
    put(store, 1, topic="A")
    assert (store.reads.topics(), store.reads.queues("B")) == (["A", "B"], [2, 5])
    assert store.reads.queue("B", 5) == (0, 3)
    assert store.reads.queue("B", 9) == store.reads.queue("C", 0) == (0, 0)
    assert store.reads.max_offset == store.log.end


_MESSAGES = st.lists(
    st.tuples(st.sampled_from(["T", "U"]), st.integers(0, 1), st.sampled_from("ab*"), st.binary()),
    max_size=60,
)


@settings(max_examples=40)
@given(
    _MESSAGES,
    st.lists(
        st.tuples(
            st.integers(-1, 40),
            st.integers(1, 20),
            st.integers(0, 2000),
            st.sampled_from([None, "*", "a", "b", "a||b", "c"]),
        ),
        min_size=5,
        max_size=9,
    ),
)
def test_any_reads_equal_those_of_a_list(
    tmp_path_factory: pytest.TempPathFactory,
    messages: list[tuple[str, int, str, bytes]],
    reads: list[tuple[int, int, int, str | None]],
) -> None:
    """A queue is a list; a read takes what has the tag, until a limit would be passed."""
    directory = LocalOwnedDirectory(tmp_path_factory.mktemp("model"))
    store = OwnedStore.open(directory, StoreSettings(**SMALL), ManualClock())
    model: dict[tuple[str, int], list[tuple[str, bytes, int]]] = {}
    for topic, queue_id, tag, body in messages:
        tags = None if tag == "*" else tag
        size = store.puts.put(Message(topic, body, tags=tags, queue_id=queue_id)).size
        model.setdefault((topic, queue_id), []).append((tag, body, size))
    store.tick()
    for topic, queue_id in [("T", 0), ("T", 1), ("U", 0), ("U", 1)]:
        queue = model.get((topic, queue_id), [])
        for offset, most, most_bytes, tags in reads:
            result = store.reads.get(topic, queue_id, offset, most, tags=tags, max_bytes=most_bytes)
            assert (result.min_offset, result.max_offset) == (0, len(queue))
            if not 0 <= offset < len(queue):
                assert not len(result)
                continue
            taken, total, following = [], 0, len(queue)
            for at, (tag, body, size) in enumerate(queue[offset:], offset):
                if taken and (len(taken) == most or total + size > most_bytes):
                    following = at
                    break
                if tags in (None, "*") or tag in tags.split("||"):
                    taken.append(body)
                    total += size
            assert bodies(result) == taken
            assert result.size == total
            # A limit may be reached by the last one that matches, before others are looked at.
            assert result.next_offset <= following
            rest = queue[result.next_offset : following]
            assert tags not in (None, "*") or not rest
            assert all(tag not in (tags or "").split("||") for tag, _, _ in rest)
            assert (result.status == "FOUND") == bool(taken)
    store.close()
