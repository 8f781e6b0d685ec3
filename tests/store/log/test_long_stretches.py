"""The compiled scan, which long stretches take, finds what the plain walk finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.store.incarnations.table import Incarnations
from mqlake.store.index import found_entries
from mqlake.store.index.found_entries import Undispatched, scan_bounds, scan_entries
from mqlake.store.log import beyond_end
from mqlake.store.log import end as log_end
from mqlake.store.log import scan as log_scan
from mqlake.store.reader import StoreReader
from tests.golden import store
from tests.store.brute_force import assert_answers, messages_of

ALL = Incarnations()
"""All records live."""


@pytest.fixture
def _no_stretch_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (log_scan, log_end, found_entries):
        monkeypatch.setattr(module, "SMALL", -1)


@pytest.mark.usefixtures("_no_stretch_is_small")
@pytest.mark.parametrize("name", ["rmq5-killed", "rmq49-clean"])
def test_answers_without_derived_files(name: str, tmp_path: Path) -> None:
    golden = store(name)
    path = golden.copy(tmp_path / "store")
    for directory in ("consumequeue", "index"):
        (path / directory).rename(tmp_path / directory)
    assert_answers(path, messages_of(golden.name))


def test_long_stretches_give_the_same_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    with StoreReader.open(store("rmq5-clean").path) as reader:
        log, end = reader._log, reader.max_offset
        plain = scan_entries(log, ALL, 100_000, end)
        monkeypatch.setattr(log_scan, "SMALL", -1)
        compiled = scan_entries(log, ALL, 100_000, end)
        assert compiled.keys() == plain.keys()
        for queue, entries in plain.items():
            assert [compiled[queue].get(n) for n in range(2000)] == [
                entries.get(n) for n in range(2000)
            ]
        assert scan_bounds(log, ALL, 100_000, end) == Undispatched(log, ALL, 100_000, end).bounds


@pytest.mark.parametrize(
    "name", ["rmq5-clean", "rmq5-torn", "rmq5-torn.variant-flip5", "rmq5-torn.variant-magic"]
)
def test_long_stretches_give_the_same_end_and_the_same_records_after_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StoreReader.open(store(name).path) as reader:
        log = reader._log
        plain = log_end.find_end(log, 0)
        behind = beyond_end.find_good_records(log, plain.offset)
        for module in (log_scan, log_end):
            monkeypatch.setattr(module, "SMALL", -1)
        assert log_end.find_end(log, 0) == plain
        assert beyond_end.find_good_records(log, plain.offset) == behind


@pytest.mark.usefixtures("_no_stretch_is_small")
@pytest.mark.parametrize("removed", ["consumequeue", "checkpoint"])
def test_answers_with_more_entries_than_are_kept(
    removed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then each queue is a scan of its own, and its offsets need none."""
    monkeypatch.setattr(Undispatched, "_MOST_ENTRIES", 10)
    golden = store("rmq5-killed")
    path = golden.copy(tmp_path / "store")
    (path / removed).rename(tmp_path / "removed")
    expected = [
        (q["topic"], q["queueId"], q["minOffset"], q["maxOffset"])
        for q in golden.queries()["queues"]
    ]
    with StoreReader.open(path) as reader:
        report = reader.inspect()
        found = [
            (t.topic, q.queue_id, q.min_offset, q.max_offset)
            for t in report.topics
            for q in t.queues
        ]
        assert sorted(found) == sorted(expected)
        for topic, queue_id, low, high in expected[::5]:
            records = reader.get(topic, queue_id, low, 1 << 20).records
            assert [record.queue_offset for record in records] == list(range(low, high))
