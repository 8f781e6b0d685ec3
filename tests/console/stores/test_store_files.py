from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mqlake.console.stores import store_files
from mqlake.console.stores.planned import Assumed, plans
from mqlake.console.stores.store_files import store_facts
from mqlake.errors import StoreError
from mqlake.store import StoreReader
from tests.golden import store

HOUR = 3_600_000


def copied(name: str, path: Path) -> Path:
    found = path / name
    shutil.copytree(store(name).path, found)
    return found


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq49-clean", "rmq5-killed"])
def test_shows_what_the_directory_has(name: str) -> None:
    facts = store_facts(store(name).path)
    with StoreReader.open(store(name).path) as reader:
        report = reader.inspect()
    log = report.commit_log
    assert [(s.offset, s.length) for s in facts.segments] == [
        (f.offset, f.length) for f in log.files
    ]
    assert facts.segment_count == len(log.files)
    assert facts.checkpoint == report.checkpoint
    assert facts.owner is None
    assert facts.is_crashed is (name == "rmq5-killed")
    assert facts.abort_process == report.abort_process
    assert all(segment.first_stored for segment in facts.segments[:-1])
    entries = {f"index/{one.name}": one.index_count - 1 for one in report.index}
    assert {one.path: one.entries for one in facts.index} == entries
    assert facts.damaged_index == []


def test_says_which_index_file_is_not_used(tmp_path: Path) -> None:
    path = copied("rmq5-clean", tmp_path)
    index = min((path / "index").iterdir())
    os.truncate(index, 100)
    facts = store_facts(path)
    (damaged,) = facts.damaged_index
    assert damaged.path == f"index/{index.name}"
    assert "size" in (damaged.problem or "")
    assert facts.not_indexed > 0


def test_a_damaged_checkpoint_is_none(tmp_path: Path) -> None:
    path = copied("rmq5-clean", tmp_path)
    (path / "checkpoint").write_bytes(b"short")
    assert store_facts(path).checkpoint is None


def test_what_is_no_store_is_an_error(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreError, match="not a store"):
            store_facts(place)


def test_the_oldest_and_the_newest_of_many_files_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_files, "MOST_FILES", 2)
    whole = store_facts(store("rmq5-clean").path)
    assert whole.segment_count > 2
    assert len(whole.segments) == 2
    assert whole.segments[0].offset == whole.log_start
    assert whole.segments[1].offset + whole.segments[1].length == whole.log_end


def test_plans_are_those_of_the_brokers_own_rules(tmp_path: Path) -> None:
    path = copied("rmq5-clean", tmp_path)
    segments = sorted((path / "commitlog").iterdir())
    found = plans(path, Assumed({"fileReservedTime": "48", "brokerName": "ignored"}, disk_used=10))
    assert found.reserved == 48 * HOUR
    assert found.tonight.is_time
    assert found.tonight.at == found.now.next_time
    for segment in segments:
        old = (found.tonight.at - 49 * HOUR) / 1000
        os.utime(segment, (old, old))
    tonight = plans(path, Assumed({"fileReservedTime": "48"}, disk_used=10)).tonight
    logs = [one for one in tonight.files if one.file.startswith("commitlog/")]
    assert [one.file for one in logs] == [f"commitlog/{one.name}" for one in segments[:-1]]
    assert {str(one.reason) for one in logs} == {"expired"}
    assert len(list((path / "commitlog").iterdir())) == len(segments), "nothing is removed"


def test_the_settings_in_the_store_count(tmp_path: Path) -> None:
    path = copied("rmq5-clean", tmp_path)
    (path / "config" / "broker.properties").write_text("fileReservedTime=5\ndeleteWhen=23\n")
    assert plans(path, Assumed()).reserved == 5 * HOUR
    assert plans(path, Assumed({"fileReservedTime": "7"})).reserved == 7 * HOUR


def test_an_invalid_setting_is_an_error(tmp_path: Path) -> None:
    path = copied("rmq5-clean", tmp_path)
    with pytest.raises(StoreError, match="deleteWhen"):
        plans(path, Assumed({"deleteWhen": "never"}))
