"""Queues that the log says nothing about, when a store is rebuilt in place."""

from __future__ import annotations

import json
from pathlib import Path

from mqlake.formats import consume_queue
from mqlake.formats.consume_queue import QueueEntry
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import RebuildReport, rebuild
from mqlake.jobs.verify import verify
from tests.jobs.logs import SEGMENT, LogWriter
from tests.jobs.model import read_queue_files

FILE = "00000000000000000200"


def make_store(path: Path) -> Path:
    log = LogWriter(path, start=SEGMENT)
    for _ in range(5):
        log.add()
    return log.close()


def add_queue(store: Path, queue: str, physical_offset: int) -> bytes:
    data = consume_queue.encode(QueueEntry(physical_offset, 91, 0)).ljust(200, b"\0")
    (store / "consumequeue" / queue).mkdir(parents=True)
    (store / "consumequeue" / queue / FILE).write_bytes(data)
    return data


def run(store: Path, out: Path | None = None) -> RebuildReport:
    return rebuild(store, LocalEngine(2), out=out, queue_file_size=200)


def test_a_queue_whose_messages_have_expired_keeps_its_offsets(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    data = add_queue(store, "Old/3", SEGMENT - 91)

    report = run(store)

    assert data == read_queue_files(store)[f"Old/3/{FILE}"]
    assert (report.queues, report.queues_kept) == (1, 1)
    assert verify(store, LocalEngine(2)).ok


def test_a_light_message_queue_stays(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    data = add_queue(store, "%LMQ%device/0", SEGMENT)

    run(store)

    assert data == read_queue_files(store)[f"%LMQ%device/0/{FILE}"]
    assert verify(store, LocalEngine(2)).ok


def test_a_queue_that_the_log_contradicts_goes(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    add_queue(store, "Wrong/0", SEGMENT)

    report = run(store)

    assert list(read_queue_files(store)) == ["Topic/0/00000000000000000000"]
    assert report.queues_kept == 0


def test_elsewhere_only_what_the_log_says_is_written(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    add_queue(store, "Old/3", SEGMENT - 91)

    run(store, tmp_path / "out")

    assert list(read_queue_files(tmp_path / "out")) == ["Topic/0/00000000000000000000"]


def test_topics_with_batch_queues_get_no_other(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for topic in ("Plain", "Batch", "Batch2"):
        log.add(topic)
    store = log.close()
    (store / "batchconsumequeue/Batch/0").mkdir(parents=True)
    (store / "config").mkdir()
    table = {"Batch2": {"topicName": "Batch2", "attributes": {"queue.type": "BatchCQ"}}}
    (store / "config/topics.json").write_text(json.dumps({"topicConfigTable": table}))

    report = run(store)

    assert list(read_queue_files(store)) == ["Plain/0/00000000000000000000"]
    names = sorted(path.parent.name for path in (store / "batchconsumequeue").glob("*/0"))
    assert names == ["Batch", "Batch2"]
    assert (report.records, report.queue_entries, report.index_entries) == (3, 3, 9)
    assert verify(store, LocalEngine(2)).ok
