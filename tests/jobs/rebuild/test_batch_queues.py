"""Batch consume queues that are rebuilt are those that the live store, and RocketMQ, wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mqlake.formats.config.topics import BATCH_QUEUES, QUEUE_TYPE
from mqlake.formats.file_name import segment_name
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import RebuildReport, rebuild
from mqlake.jobs.verify import verify
from mqlake.store.append.message import Message
from tests.formats.java_answers import content
from tests.store.test_inner_batches import SIZES, fill, opened

BATCHES = "batchconsumequeue"


def run(store: Path, out: Path | None = None, tasks: int | None = None) -> RebuildReport:
    report = rebuild(store, LocalEngine(2), out=out, tasks=tasks, hash_slots=16, max_index=32)
    assert (report.damage, report.refused) == ([], 0)
    return report


def files(store: Path) -> dict[str, bytes]:
    paths = (path for path in (store / BATCHES).rglob("*") if path.is_file())
    return {str(path.relative_to(store)): path.read_bytes() for path in paths}


def units(store: Path) -> dict[str, bytes]:
    """Return the bytes of all units of each queue."""
    found: dict[str, bytes] = {}
    for path, data in sorted(files(store).items()):
        queue = path.rpartition("/")[0]
        found[queue] = found.get(queue, b"") + data.replace(bytes(46), b"")
    return found


def make(path: Path, rounds: int = 4) -> Path:
    path.mkdir(exist_ok=True)
    store = opened(path)
    for _ in range(rounds):
        fill(store)
        store.puts.put(Message("Batches", b"single", queue_id=3))
        store.puts.put(Message("Plain", b"plain"))
        store.tick()
    store.close()
    return path


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_files_are_the_same_from_any_number_of_tasks(tmp_path: Path, tasks: int) -> None:
    store = make(tmp_path / "store")
    report = run(store, tmp_path / "out", tasks)
    assert files(tmp_path / "out") == files(store)
    assert len(files(store)) > 5
    assert report.queues == 3
    assert report.queue_entries == report.records == 4 * (len(SIZES) + 2)


def test_lost_files_are_there_again(tmp_path: Path) -> None:
    store = make(tmp_path)
    before = units(store)
    shutil.rmtree(store / BATCHES)
    run(store)
    assert units(store) == before  # in files of RocketMQ's size: nothing says how long they were
    assert verify(store, LocalEngine(2)).ok
    opened(store).close()
    assert units(store) == before


def test_units_before_the_logs_start_stay_where_they_are(tmp_path: Path) -> None:
    store = make(tmp_path, 40)
    for name in sorted(path.name for path in (store / "commitlog").iterdir())[:2]:
        (store / "commitlog" / name).unlink()
    first = min(int(path.name) for path in (store / "commitlog").iterdir())
    before = files(store)
    run(store)
    after = files(store)
    assert after.keys() < before.keys()
    assert all(before[path] == data for path, data in after.items())
    expired = (data for path, data in before.items() if path not in after)
    assert all(int.from_bytes(data[-46:-38]) < first for data in expired)
    again = opened(store)
    assert again.reads.queue("Batches", 0).max_offset == 40 * sum(SIZES)
    again.close()


def test_a_queue_whose_records_are_gone_says_where_it_goes_on(tmp_path: Path) -> None:
    store = make(tmp_path, 1)
    live = opened(store)
    for _ in range(200):
        live.puts.put(Message("Plain", b"p" * 100))
    live.tick()
    live.close()
    for name in sorted(path.name for path in (store / "commitlog").iterdir())[:-2]:
        (store / "commitlog" / name).unlink()
    before = files(store)
    assert run(store).queues_kept == 2
    assert files(store) == before


def test_rocketmqs_log_gets_rocketmqs_files(tmp_path: Path) -> None:
    """Written by RocketMQ 5.5.0."""
    store = tmp_path / "store"
    (store / "commitlog").mkdir(parents=True)
    (store / "commitlog" / segment_name(0)).write_bytes(content("inner_batches.log"))
    (store / "config").mkdir()
    table = {"Batches": {"topicName": "Batches", "attributes": {QUEUE_TYPE: BATCH_QUEUES}}}
    (store / "config/topics.json").write_text(json.dumps({"topicConfigTable": table}))
    rebuild(store, LocalEngine(1), out=tmp_path / "out")
    queue = content("batch_consume_queue.bin")
    built = files(tmp_path / "out")[f"{BATCHES}/Batches/0/{segment_name(0)}"]
    assert built.rstrip(b"\0") == queue.rstrip(b"\0")
