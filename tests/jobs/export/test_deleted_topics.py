"""Messages of deleted topics are not exported."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from mqlake.jobs.export import export
from mqlake.jobs.local import LocalEngine
from tests.jobs.logs import LogWriter


def test_messages_of_a_deleted_topic_are_left_out_and_counted(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store", segment=4096)
    for number in range(40):
        log.add("AB"[number % 2], body=b"old")
    log.forget("A")
    for _ in range(3):
        log.add("A", body=b"new")
    store = log.close()
    (store / "config").mkdir()
    table = {"topics": {"A": log.offsets[40]}}
    (store / "config" / "incarnations.json").write_text(json.dumps(table))

    report = export(store, LocalEngine(1), out=tmp_path / "out", tasks=3)
    of_topic = export(store, LocalEngine(1), out=tmp_path / "of A", topics=("A",))

    assert (report.messages, report.deleted_topic_messages) == (23, 20)
    assert (of_topic.messages, of_topic.deleted_topic_messages) == (3, 20)
    bodies = pq.read_table(tmp_path / "of A", columns=["body"])["body"].to_pylist()
    assert bodies == [b"new"] * 3
