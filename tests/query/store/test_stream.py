"""The stream over a store gives each message once, whatever happens to store and query."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mqlake.errors import StoreError
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.position import StorePosition
from tests.query.store.growing import Engine, GrowingStore, KilledError
from tests.query.store.rows import options_of
from tests.store.make_store import START


def asked(store: GrowingStore, **options: Any) -> StoreReadOptions:
    given = {"startingOffsets": "earliest", "columns": "keys,topic,physicalOffset", **options}
    return options_of(store.path, streaming=True, **given)


def engine(store: GrowingStore, **options: Any) -> Engine:
    return Engine(asked(store, **options))


@pytest.fixture
def growing(tmp_path: Path) -> GrowingStore:
    store = GrowingStore(tmp_path / "store")
    store.grow(30)
    return store


STEP = st.tuples(
    st.sampled_from(["grow", "grow", "trigger", "planned", "written", "restart"]),
    st.integers(1, 40),
)


@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    steps=st.lists(STEP, max_size=12),
    most=st.sampled_from([None, 1, 7, 50]),
    tasks=st.sampled_from([1, 3]),
    dispatched=st.booleans(),
)
def test_every_message_once_across_growth_and_kills(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int]],
    most: int | None,
    tasks: int,
    dispatched: bool,
) -> None:
    path = tmp_path_factory.mktemp("growing")
    store = GrowingStore(path / "store", dispatched=dispatched)
    store.grow(3)
    limit = {} if most is None else {"maxOffsetsPerTrigger": most}
    query = engine(store, minPartitions=tasks, **limit)
    for step, count in steps:
        if step == "grow":
            store.grow(count, ("A", "B", f"New{count}"))
        elif step == "restart":
            query.restart()
        else:
            try:
                query.trigger(None if step == "trigger" else step)
            except KilledError:
                query.restart()
    query.run_all()

    assert query.keys == store.keys
    assert most is None or max(map(len, query.sink.values())) <= most


def created_anew(store: GrowingStore, count: int) -> GrowingStore:
    shutil.rmtree(store.path)
    found = GrowingStore(store.path, seed=1)
    found.grow(count)
    return found


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("limit", [{}, {"maxOffsetsPerTrigger": 7}])
def test_a_store_created_anew_at_the_same_path_is_an_error(
    growing: GrowingStore, limit: dict[str, int], *, restarted: bool
) -> None:
    query = engine(growing, **limit)
    query.run_all()
    assert query.keys == growing.keys
    created_anew(growing, 200)
    if restarted:
        query.restart()

    with pytest.raises(StoreError, match=r"is not the one that this query has read: .* created"):
        query.trigger()

    query.restart(asked(growing, failOnDataLoss=False, **limit))
    assert query.trigger() > 0


def test_a_batch_planned_on_another_log_is_an_error(growing: GrowingStore) -> None:
    query = engine(growing)
    with pytest.raises(KilledError):
        query.trigger("planned")
    created_anew(growing, 200)

    with pytest.raises(StoreError, match="is not the one that this query has read"):
        query.restart()


def test_a_log_that_was_cut_and_written_again_is_an_error(growing: GrowingStore) -> None:
    """Only the last message differs, and only in its store timestamp."""
    query = engine(growing)
    query.run_all()
    last = growing.messages[-1]
    growing.grow(1)
    segment = max((growing.path / "commitlog").iterdir())
    for file in sorted((growing.path / "commitlog").iterdir()):
        if int(file.name) <= last.physical_offset:
            segment = file
    at = last.physical_offset - int(segment.name) + 56
    with segment.open("r+b") as file:
        file.seek(at)
        file.write((START + 1_000_000).to_bytes(8, "big"))

    with pytest.raises(StoreError, match="its log was cut and written again"):
        query.trigger()


def test_a_checkpoint_without_a_fingerprint_is_read_on(growing: GrowingStore) -> None:
    """Earlier versions wrote none."""
    stream = engine(growing).stream
    start = {"physicalOffset": growing.messages[10].physical_offset}
    end = stream.position(start)
    assert end["physicalOffset"] > start["physicalOffset"]
    assert stream.plan(start, end)
    assert stream.position(end) == end


def test_a_new_query_starts_behind_what_is_there(growing: GrowingStore) -> None:
    query = Engine(options_of(growing.path, streaming=True))
    assert query.trigger() == 0
    growing.grow(5, ("New",))
    query.run_all()
    assert query.keys == growing.keys[-5:]


def test_starting_offsets_by_queue(growing: GrowingStore) -> None:
    query = engine(growing, startingOffsets='{"A": {"0": 2, "1": -1}, "B": {"2": -2}}')
    growing.grow(10)
    query.trigger()
    growing.grow(10, ("A", "C"))
    query.run_all()
    ends = {}
    for message in growing.messages[:40]:
        ends[message.topic, message.queue_id] = message.queue_offset + 1
    starts = {("A", 0): 2, ("A", 1): ends["A", 1]}
    assert query.keys == [
        message.properties["KEYS"]
        for message in growing.messages
        if message.queue_offset >= starts.get((message.topic, message.queue_id), 0)
    ]


def test_assigned_queues_start_near_their_first_message(growing: GrowingStore) -> None:
    growing.grow(200)
    message = next(one for one in growing.messages[150:] if (one.topic, one.queue_id) == ("A", 1))
    query = engine(
        growing,
        assign='{"A": [1]}',
        startingOffsets=f'{{"A": {{"1": {message.queue_offset}}}}}',
    )
    first = StorePosition.read(query.stream.position())
    query.run_all()
    assert first.physical_offset == message.physical_offset
    assert query.keys == [
        one.properties["KEYS"]
        for one in growing.messages
        if (one.topic, one.queue_id) == ("A", 1) and one.queue_offset >= message.queue_offset
    ]


def test_a_starting_time(growing: GrowingStore) -> None:
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    query = engine(growing, startingTimestamp=START + 20, **strategy)
    query.run_all()
    growing.grow(9)
    query.run_all()
    assert query.keys == growing.keys[20:]


def test_starts_are_forgotten_once_they_are_passed(growing: GrowingStore) -> None:
    query = engine(growing, startingOffsets='{"A": {"0": 2}}')
    start = query.stream.position()
    assert start["starts"] == {"A": {"0": 2}}
    end = query.stream.position(start, query.stream.most)
    assert end.keys() == {"physicalOffset", "fingerprint", "subscription"}


def test_available_now_leaves_what_comes_later(growing: GrowingStore) -> None:
    query = engine(growing, maxOffsetsPerTrigger=8)
    query.stream.stop_at_end()
    before = growing.keys
    query.trigger()
    growing.grow(20)
    query.run_all()
    assert query.keys == before
    assert [len(rows) for rows in query.sink.values()] == [8, 8, 8, 6]


@pytest.mark.parametrize("dispatched", [True, False])
def test_a_batch_takes_about_so_many_bytes(tmp_path: Path, *, dispatched: bool) -> None:
    store = GrowingStore(tmp_path / "store", dispatched=dispatched)
    store.grow(200)
    query = engine(store, maxBytesPerTrigger=3000)
    query.run_all()
    assert query.keys == store.keys
    ends = [rows[-1]["physicalOffset"] for rows in query.sink.values()]
    assert len(ends) > 4
    # Without a record near enough of those queues that are asked, a batch goes on to the segment's
    # end.
    assert all(after - before < 3000 + 4096 for before, after in pairwise(ends))


def test_a_batch_waits_for_enough_messages(
    growing: GrowingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("mqlake.storage.clock.time.monotonic", lambda: now[0])
    query = engine(growing, minOffsetsPerTrigger=10, maxTriggerDelay="2m")
    assert query.trigger() == 30
    growing.grow(9)
    assert query.trigger() == 0
    growing.grow(1)
    assert query.trigger() == 10
    growing.grow(1)
    now[0] += 119
    assert query.trigger() == 0
    now[0] += 1
    assert query.trigger() == 1


def test_only_wanted_messages_count(growing: GrowingStore) -> None:
    growing.grow(300)
    query = engine(growing, subscribe="A", maxOffsetsPerTrigger=20)
    query.run_all()
    sizes = [len(rows) for rows in query.sink.values()]
    assert set(sizes[:-1]) == {20}
    assert all(row["topic"] == "A" for rows in query.sink.values() for row in rows)


def test_retention_that_overtakes_the_query(growing: GrowingStore) -> None:
    query = engine(growing)
    query.trigger()
    read = growing.keys
    growing.grow(100)
    kept = 0
    while kept <= StorePosition.read(query.stream.seen or {}).physical_offset:
        kept = growing.drop_first_segment()

    with pytest.raises(StoreError, match=f"the log begins at {kept}; messages from"):
        query.trigger()

    query.restart(asked(growing, failOnDataLoss="false"))
    left = [one.properties["KEYS"] for one in growing.messages if one.physical_offset >= kept]
    assert query.keys == read + left


def test_a_log_that_was_cut(growing: GrowingStore, tmp_path: Path) -> None:
    query = engine(growing)
    query.trigger()
    other = GrowingStore(growing.path)
    for file in (growing.path / "commitlog").iterdir():
        file.unlink()
    other.grow(4)
    query.restart()
    with pytest.raises(StoreError, match="the log was cut, or is another one"):
        query.trigger()
    query.restart(asked(growing, failOnDataLoss="false"))
    assert query.trigger() == 0
    other.grow(3)
    assert query.trigger() == 3


def test_a_checkpoint_of_something_else(growing: GrowingStore) -> None:
    with pytest.raises(StoreError, match="checkpoint is not one of this source"):
        engine(growing).stream.plan({"A": {"0": 1}}, {"A": {"0": 2}})


CHANGES = [
    ({"subscribe": "A"}, {"subscribe": "A,B"}),
    ({"subscribe": "A"}, {}),
    ({"subscribePattern": "A"}, {"subscribePattern": "A|B"}),
    ({"assign": '{"A": [0]}'}, {"assign": '{"A": [0, 1]}'}),
    ({"tags": "one"}, {"tags": "one || two"}),
    ({"keys": "key-1"}, {"keys": "key-1 key-2"}),
]


@pytest.mark.parametrize(("before", "now"), CHANGES)
def test_a_changed_subscription_is_an_error(
    growing: GrowingStore, before: dict[str, str], now: dict[str, str]
) -> None:
    query = Engine(asked(growing, **before))
    query.run_all()

    query.restart(asked(growing, **now))
    with pytest.raises(StoreError, match="failOnSubscriptionChange to false"):
        query.trigger()


def test_a_batch_planned_for_another_subscription_is_an_error(growing: GrowingStore) -> None:
    query = Engine(asked(growing, subscribe="A"))
    with pytest.raises(KilledError):
        query.trigger("planned")

    with pytest.raises(StoreError, match="the checkpoint was written for the subscription"):
        query.restart(asked(growing, subscribe="B"))


def test_a_changed_subscription_continues_from_the_checkpoint_if_told_to(
    growing: GrowingStore, caplog: pytest.LogCaptureFixture
) -> None:
    query = Engine(asked(growing, subscribe="A"))
    query.run_all()
    growing.grow(20)
    query.restart(asked(growing, subscribe="A,B", failOnSubscriptionChange=False))
    query.run_all()
    growing.grow(20)
    query.run_all()

    later = [f"key-{number}" for number in range(len(growing.keys) - 40, len(growing.keys))]
    assert [key for key in query.keys if key in set(later)] == later
    assert sum("are not read" in record.message for record in caplog.records) == 1
    query.restart(asked(growing, subscribe="B,A"))
    growing.grow(1)
    assert query.trigger() == 1


def test_a_checkpoint_without_a_subscription_is_read_on(growing: GrowingStore) -> None:
    stream = Engine(asked(growing, subscribe="A")).stream
    start = {"physicalOffset": growing.messages[10].physical_offset}
    end = stream.position(start)
    assert end["subscription"] == '{"subscribe":["A"]}'
