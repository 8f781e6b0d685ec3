"""Stores with topics that were deleted and created again: what verify and rebuild make of them."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.formats import consume_queue
from mqlake.formats.config.topics import Topic
from mqlake.formats.consume_queue import ENTRY_SIZE, QueueEntry
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Record
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import RebuildReport, rebuild
from mqlake.jobs.verify import VerifyReport, verify
from mqlake.store.append.message import Message
from tests.jobs.logs import LogWriter
from tests.jobs.model import (
    index_files,
    queue_files,
    read_index_files,
    read_log,
    read_queue_files,
)
from tests.store.incarnations.test_older_log import fill, open_store

FILE_SIZE, SLOTS, MAX_INDEX = 200, 50, 40
TOPICS = ("A", "B")


class Step(NamedTuple):
    """A message to a queue of a topic, or the topic's deletion."""

    topic: str
    queue_id: int | None


class History:
    """A store that a broker wrote, with the records of each topic's last incarnation."""

    def __init__(self, store: Path, steps: Sequence[Step]) -> None:
        log, lives = LogWriter(store, segment=4096), dict[str, int]()
        at: dict[int, int] = {}
        log.add("Other")
        for topic, queue_id in steps:
            if queue_id is None:
                log.forget(topic)
                lives[topic] = lives.get(topic, 0) + 1
            else:
                at[log.add(topic, queue_id)] = lives.get(topic, 0)
        log.add("Other")
        self.store = log.close()
        self.records = list(read_log(store))
        self.living = [
            each
            for each in self.records
            if at.get(each.physical_offset, 0) == lives.get(each.topic, 0)
        ]

    @property
    def dead(self) -> int:
        return len(self.records) - len(self.living)

    def stop(self) -> None:
        """Write the files that RocketMQ leaves at a clean stop."""
        for path, data in queue_files(self.living, FILE_SIZE).items():
            target = self.store / "consumequeue" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        run_rebuild(self.store, self.store / "rebuilt", 1)
        for name in ("index", "checkpoint"):
            (self.store / "rebuilt" / name).rename(self.store / name)

    @property
    def settings(self) -> dict[str, int]:
        """The number of queues of each topic that exists."""
        names = {each.topic for each in self.living}
        return {
            name: 1 + max(each.queue_id for each in self.records if each.topic == name)
            for name in names
        }

    @property
    def has_all_files(self) -> bool:
        """Whether each queue of each existing topic has living records, so that it has files."""
        has = {(each.topic, each.queue_id) for each in self.living}
        return all((name, n) in has for name, count in self.settings.items() for n in range(count))

    def write_topics(self) -> None:
        """Write the table of topics, without those that do not exist."""
        table = {
            topic: {"topicName": topic, "readQueueNums": count, "writeQueueNums": count}
            for topic, count in self.settings.items()
        }
        (self.store / "config").mkdir()
        text = json.dumps({"topicConfigTable": table})
        (self.store / "config" / "topics.json").write_text(text)


def run_rebuild(store: Path, out: Path | None, tasks: int) -> RebuildReport:
    return rebuild(
        store,
        LocalEngine(2),
        out=out,
        queue_file_size=FILE_SIZE,
        hash_slots=SLOTS,
        max_index=MAX_INDEX,
        dialect=Dialect.V5_5,
        tasks=tasks,
    )


def run_verify(store: Path, tasks: int | None = None) -> VerifyReport:
    return verify(store, LocalEngine(2), dialect=Dialect.V5_5, tasks=tasks)


STEPS = st.lists(
    st.builds(
        Step, st.sampled_from(TOPICS), st.one_of(st.none(), *[st.integers(0, 2) for _ in range(5)])
    ),
    max_size=50,
)
BURSTS = st.lists(
    st.tuples(st.builds(Step, st.just("A"), st.integers(0, 2)), st.integers(1, 4)),
    min_size=2,
    max_size=4,
).map(lambda bursts: [step for step, count in bursts for _ in range(count)])
"""A topic of which a queue may have only messages that are older than all of another one."""


def _with_deletion(parts: tuple[list[Step], list[Step]]) -> list[Step]:
    return [*parts[0], Step("A", None), *parts[1]]


MANY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
)


def by_queue(records: Sequence[Record]) -> dict[str, list[Record]]:
    queues: dict[str, list[Record]] = defaultdict(list)
    for each in records:
        queues[f"{each.topic}/{each.queue_id}"].append(each)
    return queues


@MANY
@given(steps=STEPS, tasks=st.integers(1, 8))
def test_the_log_alone_brings_nothing_back_to_a_queue_that_was_used_again(
    steps: list[Step], tasks: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("store")
    history = History(directory / "store", steps)

    report = run_rebuild(history.store, directory / "out", tasks)

    built = read_queue_files(directory / "out")
    for path, data in queue_files(history.living, FILE_SIZE).items():
        assert data == built[path]
    assert report.deleted_topic_records <= history.dead
    assert (report.refused, report.damage) == (0, []) or _deleted_unseen(history)
    expected = index_files(history.records, SLOTS, MAX_INDEX, Dialect.V5_5)
    assert expected == read_index_files(directory / "out")


def _deleted_unseen(history: History) -> bool:
    """Return whether a queue of a deleted topic was not used again: its records come back."""
    living = by_queue(history.living)
    return any(queue not in living for queue in by_queue(history.records))


@MANY
@given(steps=STEPS, tasks=st.integers(1, 8))
def test_a_healthy_store_has_no_damage_and_stays_as_it_is(
    steps: list[Step], tasks: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(tmp_path_factory.mktemp("store") / "store", steps)
    history.stop()
    history.write_topics()
    expected = queue_files(history.living, FILE_SIZE)

    report = run_verify(history.store, tasks)
    assert (report.ok, report.damage, report.deleted_topic_records) == (True, [], history.dead)

    again = run_rebuild(history.store, None, tasks)
    built = read_queue_files(history.store)
    assert {path: built[path] for path in expected} == expected
    if history.has_all_files:
        assert history.dead == again.deleted_topic_records
        assert built == expected
    existing = [each for each in history.records if each.topic in history.settings]
    dead = len(existing) - len(history.living)
    assert again.recreated_topic_records <= min(dead, again.deleted_topic_records)
    assert again.recreated_topic_records == dead or not history.has_all_files
    assert run_verify(history.store, tasks).ok


@MANY
@given(
    steps=st.one_of(STEPS, BURSTS, st.tuples(BURSTS, BURSTS).map(_with_deletion)),
    lost=st.sets(st.integers(0, 2), min_size=1, max_size=2),
)
def test_a_rebuild_without_the_table_restores_lost_queues_of_topics_with_settings(
    steps: list[Step],
    lost: set[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    history = History(tmp_path_factory.mktemp("store") / "store", steps)
    history.stop()
    history.write_topics()
    for queue_id in lost:
        shutil.rmtree(history.store / f"consumequeue/A/{queue_id}", ignore_errors=True)

    report = run_rebuild(history.store, None, 2)

    built = read_queue_files(history.store)
    expected = queue_files(history.living, FILE_SIZE)
    assert {path: built[path] for path in expected} == expected
    assert report.deleted_topic_records <= history.dead
    assert run_verify(history.store).ok
    again = run_rebuild(history.store, None, 2)
    assert again.deleted_topic_records == report.deleted_topic_records
    assert read_queue_files(history.store) == built


def test_a_queue_that_was_lost_with_old_records_only_is_rebuilt(tmp_path: Path) -> None:
    steps = [Step("A", 2)] * 5 + [Step("A", n % 2) for n in range(6)]
    history = History(tmp_path / "store", steps)
    history.stop()
    history.write_topics()
    shutil.rmtree(history.store / "consumequeue/A/2")

    report = run_rebuild(history.store, None, 1)

    assert (report.deleted_topic_records, report.recreated_topic_records) == (0, 0)
    assert read_queue_files(history.store) == queue_files(history.living, FILE_SIZE)
    assert not (history.store / "config/incarnations.json").exists()


@MANY
@given(steps=STEPS, tasks=st.integers(1, 8))
def test_the_table_says_what_queue_files_cannot(
    steps: list[Step], tasks: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("store")
    history = History(directory / "store", steps)
    end = history.records[-1].physical_offset
    befores = {
        topic: min((e.physical_offset for e in history.living if e.topic == topic), default=end)
        for topic in TOPICS
    }
    (history.store / "config").mkdir()
    (history.store / "config" / "incarnations.json").write_text(json.dumps({"topics": befores}))

    report = run_rebuild(history.store, directory / "out", tasks)

    assert queue_files(history.living, FILE_SIZE) == read_queue_files(directory / "out")
    assert (report.deleted_topic_records, report.damage) == (history.dead, [])


def deleted_and_created(path: Path) -> History:
    steps = [Step("A", n % 3) for n in range(30)] + [Step("A", None)]
    history = History(path, [*steps, *[Step("A", n % 3) for n in range(7)]])
    history.stop()
    history.write_topics()
    return history


def test_damage_of_a_topic_that_was_created_again_is_found(tmp_path: Path) -> None:
    history = deleted_and_created(tmp_path / "store")
    path = history.store / "consumequeue" / "A" / "1" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    entry = consume_queue.decode(bytes(data), ENTRY_SIZE)
    data[ENTRY_SIZE : 2 * ENTRY_SIZE] = consume_queue.encode(QueueEntry(*entry[:2], 5))
    path.write_bytes(data)

    report = run_verify(history.store)

    assert (report.ok, report.queue_entries.wrong.count) == (False, 1)
    assert history.dead == report.deleted_topic_records


def test_an_entry_of_a_dead_record_hides_a_living_one(tmp_path: Path) -> None:
    history = deleted_and_created(tmp_path / "store")
    path = history.store / "consumequeue" / "A" / "1" / f"{0:020d}"
    dead = [each for each in history.records if (each.topic, each.queue_id) == ("A", 1)][1]
    data = bytearray(path.read_bytes())
    entry = QueueEntry(dead.physical_offset, dead.size, 0)
    data[ENTRY_SIZE : 2 * ENTRY_SIZE] = consume_queue.encode(entry)
    path.write_bytes(data)

    report = run_verify(history.store)

    assert (report.ok, report.queue_entries.wrong.count) == (False, 1)


def test_a_rebuild_keeps_what_it_found_in_the_table(tmp_path: Path) -> None:
    history = deleted_and_created(tmp_path / "store")

    run_rebuild(history.store, None, 3)

    table = json.loads((history.store / "config" / "incarnations.json").read_text())
    first = min(each.physical_offset for each in history.living if each.topic == "A")
    assert table["topics"] == {"A": first}


def test_a_store_without_deletions_gets_no_table(tmp_path: Path) -> None:
    history = History(tmp_path / "store", [Step("A", n % 3) for n in range(30)])

    run_rebuild(history.store, None, 3)

    assert not (history.store / "config").exists()


@pytest.mark.parametrize("has_table", [False, True])
def test_lost_queue_files_of_a_topic_without_settings_are_rebuilt_if_the_table_is_complete(
    tmp_path: Path, has_table: bool
) -> None:
    store = open_store(tmp_path)
    store.config.topics.put(Topic("Other", 1, 1))
    for topic in ("Other", "T", "Other"):
        fill(store, topic, 3)
    store.close()
    lost = tmp_path / "consumequeue" / "T"
    expected = {path.name: path.read_bytes() for path in (lost / "0").iterdir()}
    shutil.rmtree(lost)
    if not has_table:
        (tmp_path / "config" / "incarnations.json").unlink()

    report = rebuild(tmp_path, LocalEngine(1), tasks=1)

    assert report.deleted_topic_records == (0 if has_table else 3)
    built = {path.name: path.read_bytes() for path in (lost / "0").glob("*")}
    assert built == (expected if has_table else {})


@given(queue_ids=st.lists(st.integers(0, 2), min_size=1, max_size=20), data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
def test_a_rebuild_restores_whatever_queues_were_lost_if_the_table_is_complete(
    queue_ids: list[int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("store")
    store = open_store(path)
    store.config.topics.put(Topic("Deleted", 1, 1))
    fill(store, "Deleted", 2)
    store.removal.remove("Deleted")
    store.config.topics.put(Topic("T", 3, 3))
    for queue_id in queue_ids:
        assert store.puts.put(Message("T", b"body", queue_id=queue_id)).is_ok
    store.close()
    topic = path / "consumequeue" / "T"
    expected = read_queue_files(path)
    for name in data.draw(st.sets(st.sampled_from(sorted(set(queue_ids))))):
        shutil.rmtree(topic / str(name))

    report = rebuild(path, LocalEngine(1), queue_file_size=FILE_SIZE, tasks=2)

    assert (report.deleted_topic_records, report.damage) == (2, [])
    assert read_queue_files(path) == expected
