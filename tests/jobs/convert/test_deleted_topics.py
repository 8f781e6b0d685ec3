"""Messages of deleted topics are not converted, in either direction."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from mqlake.cli.views.convert import view
from mqlake.jobs.convert import convert_to_kafka
from mqlake.jobs.convert.to_rocketmq import convert_to_rocketmq
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from tests.jobs.convert.test_convert import read_logs, read_store
from tests.jobs.logs import LogWriter

ENGINE = LocalEngine(2)


@pytest.mark.parametrize("living", [0, 1, 30])
@pytest.mark.parametrize("is_derived", [True, False])
def test_dead_messages_of_a_store_are_left_out_and_counted(
    living: int, is_derived: bool, tmp_path: Path
) -> None:
    """With entries in queue files, or while the next start still has to dispatch them."""
    log = LogWriter(tmp_path / "store", segment=4096)
    for number in range(60):
        log.add(("A", "B", "rmq_sys_wheel_timer")[number % 3], body=b"old")
    log.forget("A")
    begin = log.end
    for _ in range(living):
        log.add("A", body=b"new")
    store = log.close()
    (store / "config").mkdir()
    table = {"topics": {"A": begin, "rmq_sys_wheel_timer": begin}}
    (store / "config" / "incarnations.json").write_text(json.dumps(table))
    if is_derived:
        rebuild(store, ENGINE, queue_file_size=400, hash_slots=20, max_index=80)

    report = convert_to_kafka(store, ENGINE, out=tmp_path / "out")
    of_b = convert_to_kafka(store, ENGINE, out=tmp_path / "b", topics=("B",))

    assert (report.records, report.deleted_topic_messages) == (20 + living, 20)
    assert (of_b.records, of_b.deleted_topic_messages) == (20, 0)
    found = read_logs(tmp_path / "out")
    values = [record[3] for record in found.get(("A", 0), [])]
    assert values == [b"new"] * living
    console = Console(width=200)
    with console.capture() as shown:
        console.print(*view(report, 1))
    assert "of a deleted topic" in shown.get()


@pytest.mark.parametrize("mark", ["delete", "stray", "future"])
def test_partitions_that_kafka_removes_are_left_out(mark: str, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store", segment=4096)
    for number in range(20):
        log.add("AB"[number % 2])
    logs = tmp_path / "logs"
    convert_to_kafka(log.close(), ENGINE, out=logs)
    marked = f"A-0.0123456789abcdef0123456789abcdef-{mark}"
    shutil.move(logs / "A-0", logs / marked)

    report = convert_to_rocketmq(logs, ENGINE, out=tmp_path / "back")

    assert (report.records, report.deleted_topic_messages) == (10, 0)
    assert [topic for topic, _ in read_store(tmp_path / "back")] == ["B"]
