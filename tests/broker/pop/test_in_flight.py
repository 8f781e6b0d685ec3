"""However many pops are in memory, no step of the event loop handles all of them."""

from __future__ import annotations

from pathlib import Path

from mqlake.broker.pop.check_points import CheckPoint
from mqlake.broker.pop.in_flight import InFlight, Pop
from mqlake.formats.config import ConsumerOffsets
from mqlake.remoting.slices import run_at_once
from mqlake.storage.clock import SystemClock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.config.config_file import ConfigFile
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable

TOPICS, GROUPS = ("Orders", "Bills"), ("g", "h")
QUEUES = 50


def _filled(path: Path) -> tuple[InFlight, ConsumerOffsetTable]:
    """Return pops of one message each, of all topics, groups and queues; all are settled."""
    directory = LocalOwnedDirectory(path)
    file = ConfigFile[ConsumerOffsets].load(directory, ConsumerOffsets, SystemClock())
    offsets = ConsumerOffsetTable(file)
    in_flight = InFlight(offsets)
    for topic in TOPICS:
        for group in GROUPS:
            for queue_id in range(QUEUES):
                pop = Pop(CheckPoint(0, 1, 2, 1, queue_id, topic, group, [0]), 0, 1)
                in_flight.add(pop, 10)
                in_flight.settle(pop, 100)
    return in_flight, offsets


def test_offsets_are_committed_a_queue_at_a_time(tmp_path: Path) -> None:
    in_flight, offsets = _filled(tmp_path)
    steps = sum(1 for _ in in_flight.commit(100))
    assert steps == len(offsets) == len(TOPICS) * len(GROUPS) * QUEUES


def test_offsets_of_what_has_ended_are_not_committed(tmp_path: Path) -> None:
    in_flight, offsets = _filled(tmp_path)
    commit = in_flight.commit(100)
    next(commit)  # It has begun when the topic and the group end.
    assert sum(1 for _ in in_flight.topic_ended("Orders")) >= QUEUES
    assert sum(1 for _ in in_flight.group_ended("g")) >= QUEUES
    run_at_once(commit)
    assert {key for key, _ in offsets.committed()} == {"Bills@h"}
