"""Histories of topics that are created, deleted and created again, found again in their logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.store.incarnations.evidence import Evidence, existing_topics
from mqlake.store.incarnations.restarts import Position, RestartTracer, befores, join

Queue = tuple[str, int]


class Record(NamedTuple):
    queue: Queue
    queue_offset: int
    end: int
    physical_offset: int
    life: int
    """How often its topic was deleted before it was put."""


class Log:
    """A log's records, as a broker puts them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.lives: dict[str, int] = defaultdict(int)
        self._next: dict[Queue, int] = {}

    def put(self, topic: str, queue_id: int, messages: int = 1) -> None:
        queue, at = (topic, queue_id), 100 * (1 + len(self.records))
        first = self._next.get(queue, 0)
        self._next[queue] = first + messages
        self.records.append(Record(queue, first, first + messages, at, self.lives[topic]))

    def delete(self, topic: str) -> None:
        self.lives[topic] += 1
        self._next = {queue: end for queue, end in self._next.items() if queue[0] != topic}

    def expire(self, count: int) -> None:
        del self.records[:count]

    @property
    def begins(self) -> dict[Queue, int]:
        """The first record of each queue that has files, if these are whole."""
        living = [each for each in reversed(self.records) if self.is_living(each)]
        return {each.queue: each.physical_offset for each in living if each.queue_offset == 0}

    def is_living(self, record: Record) -> bool:
        return record.life == self.lives[record.queue[0]]


def trace(records: Sequence[Record]) -> RestartTracer:
    tracer = RestartTracer()
    runs: dict[Queue, list[list[Record]]] = defaultdict(list)
    for each in records:
        found = runs[each.queue]
        if found and found[-1][-1].end == each.queue_offset:
            found[-1].append(each)
        else:
            found.append([each])
    for queue, own in runs.items():
        for run in own:
            first, last = (
                Position(run[at].physical_offset, run[at].queue_offset) for at in (0, -1)
            )
            tracer.see(queue, first, run[0].end, last)
    return tracer


def found(
    stretches: Sequence[Sequence[Record]], evidence: Evidence | None = None
) -> dict[str, int]:
    traces = join(trace(each).traces for each in stretches)
    return evidence.befores(traces) if evidence else befores(traces)


def log_of(offsets: Sequence[int]) -> list[Record]:
    return [Record(("T", 0), each, each + 1, 100 * at, 0) for at, each in enumerate(offsets)]


TOPICS, QUEUES = ("A", "B"), 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TOPICS), st.integers(0, QUEUES - 1), st.sampled_from([1, 1, 4])),
        st.tuples(st.sampled_from(TOPICS), st.none(), st.none()),
    ),
    max_size=60,
)


def history(steps: Sequence[tuple[str, int | None, int | None]]) -> Log:
    log = Log()
    for topic, queue_id, messages in steps:
        if queue_id is None or messages is None:
            log.delete(topic)
        else:
            log.put(topic, queue_id, messages)
    return log


@given(steps=STEPS, expired=st.integers(0, 20), cuts=st.lists(st.integers(0, 60)))
def test_living_records_live_and_those_before_a_restart_are_dead(
    steps: list[tuple[str, int | None, int | None]], expired: int, cuts: list[int]
) -> None:
    log = history(steps)
    log.expire(expired)
    edges = [0, *sorted(min(cut, len(log.records)) for cut in cuts), len(log.records)]
    stretches = [log.records[a:b] for a, b in pairwise(edges)]

    before = found(stretches)

    assert before == found([log.records])
    restarted = {each.queue for each in log.records if log.is_living(each)}
    for each in log.records:
        is_dead = each.physical_offset < before.get(each.queue[0], 0)
        assert not (is_dead and log.is_living(each))
        if each.queue in restarted and not log.is_living(each):
            assert is_dead


@given(steps=STEPS)
def test_queue_files_confirm_what_the_log_says(
    steps: list[tuple[str, int | None, int | None]],
) -> None:
    log = history(steps)
    end = 100 * (2 + len(log.records))
    living = {topic for topic, _ in log.begins}
    evidence = Evidence(log.begins, existing_topics(living, []), end)

    before = found([log.records], evidence)

    for each in log.records:
        topic = each.queue[0]
        dead_before = max(before.get(topic, 0), evidence.removed_before(topic))
        is_dead = each.physical_offset < dead_before
        assert not (is_dead and log.is_living(each))
        if living:  # Without any queue file, nothing shows that a topic is gone.
            assert is_dead == (not log.is_living(each))


@pytest.mark.parametrize(
    ("offsets", "first_living"),
    [
        ([0, 1, 2], None),
        ([7, 8, 9], None),
        ([0, 1, 2, 0], 3),  # one message since
        ([0, 1, 2, 0, 1], 3),
        ([0, 0, 1, 2], 1),  # deleted after one message
        ([0, 0, 2, 3], None),  # the second 0 was 1 before it was damaged
        ([0, 1, 2, 0, 4, 5], None),  # the second 0 was 3
        ([0, 1, 2, 0, 3, 4], None),  # 0 was written twice
        ([5, 6, 7, 0, 3, 4], 3),  # 1 and 2 are lost
        ([0, 1, 0, 1, 0, 1], 4),  # deleted twice
        ([0, 1, 0, 0], 3),
        ([0, 1, 2, 1, 2, 3], None),  # 0 is lost: nothing proves a deletion
    ],
)
def test_a_restart_fits_its_neighbours(offsets: list[int], first_living: int | None) -> None:
    records = log_of(offsets)

    for cut in range(len(records) + 1):
        expected = {} if first_living is None else {"T": 100 * first_living}
        assert expected == found([records[:cut], records[cut:]])


def test_queue_files_decide_what_was_written_twice() -> None:
    records = log_of([0, 0, 1, 2])

    assert found([records], Evidence({("T", 0): 0}, dispatched=400)) == {}
    assert found([records], Evidence({("T", 0): 100}, dispatched=400)) == {"T": 100}
    assert found([records], Evidence({("T", 0): 0}, dispatched=100)) == {"T": 100}


def test_a_record_that_is_not_dispatched_lives_without_queue_files() -> None:
    evidence = Evidence({}, existing_topics(["B"], ["C"]), dispatched=300)

    removed = [evidence.removed_before(topic) for topic in "ABC"]
    assert removed == [300, 0, 0]


@pytest.mark.parametrize(("files", "settings"), [(["B"], None), ([], ["B"])])
def test_a_missing_table_is_no_evidence(files: list[str], settings: list[str] | None) -> None:
    assert existing_topics(files, settings) is None
    assert Evidence({}, existing_topics(files, settings), 300).removed_before("A") == 0


def test_a_queue_that_continues_past_the_first_entry_of_another_has_lost_its_files() -> None:
    queues, log = [("T", 0), ("T", 1)], Log()
    for _ in range(3):
        for topic, queue_id in queues:
            log.put(topic, queue_id)
    begins: dict[Queue, int | None] = {("T", 1): 200}

    assert found([log.records], Evidence(begins, dispatched=10_000)) == {}
    assert found([log.records[:1], log.records[3:]], Evidence({("T", 1): 200})) == {}
    only_before = [log.records[0], *(each for each in log.records if each.queue == queues[1])]
    assert found([only_before], Evidence(begins, dispatched=10_000)) == {"T": 200}


def test_files_that_begin_later_show_no_deletion() -> None:
    log = Log()
    log.put("T", 0)
    log.put("T", 1)

    assert found([log.records], Evidence({("T", 1): None}, dispatched=10_000)) == {}


def test_a_queue_deleted_countless_times_is_found_in_bounded_space() -> None:
    records = log_of([0, 1] * 5000)
    tracer = trace(records)

    assert len(tracer.traces["T", 0].starts) < 100
    assert befores(join([tracer.traces])) == {"T": 100 * 9998}
