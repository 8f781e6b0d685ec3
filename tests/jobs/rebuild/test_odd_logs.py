"""Logs that no golden store has: imitated records, lost and repeated ones, wild queue offsets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.errors import JobError
from mqlake.formats import checkpoint, record, sys_flag
from mqlake.formats.consume_queue import BLANK_ENTRY, ENTRY_SIZE, QueueEntry, decode
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Record
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import RebuildReport, rebuild
from tests.jobs.logs import SEGMENT, LogWriter, change
from tests.jobs.model import (
    index_files,
    queue_files,
    read_index_files,
    read_log,
    read_queue_files,
)

FILE_SIZE, SLOTS, MAX_INDEX = 200, 50, 40


def run(store: Path, out: Path, tasks: int | None = None) -> RebuildReport:
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


def assert_built(records: list[Record], out: Path) -> None:
    assert queue_files(records, FILE_SIZE) == read_queue_files(out)
    assert index_files(records, SLOTS, MAX_INDEX, Dialect.V5_5) == read_index_files(out)


def entries(out: Path, queue: str = "Topic/0", start: int = 0) -> list[QueueEntry]:
    data = (out / "consumequeue" / queue / f"{start:020d}").read_bytes()
    return [decode(data, at) for at in range(0, len(data), ENTRY_SIZE)]


PROPERTIES = st.dictionaries(
    st.sampled_from(["KEYS", "UNIQ_KEY", "TAGS", "DELAY"]), st.sampled_from(["a", "b c", "2"])
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["A", "B" * 130, "SCHEDULE_TOPIC_XXXX"]),
            "queue_id": st.integers(0, 2),
            "body": st.binary(max_size=300),
            "properties": PROPERTIES,
            "sys_flag": st.sampled_from([0, 4, 8, 12]),
            "born_host": st.sampled_from(["1.2.3.4:5", "[2001:db8:0:0:0:0:0:7]:6"]),
        }
    ),
    max_size=60,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.differing_executors])
@given(records=RECORDS, tasks=st.integers(1, 12))
def test_any_log_in_any_number_of_tasks(
    records: list[dict[str, Any]], tasks: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("store")
    log = LogWriter(directory / "store", segment=4096)
    for fields in records:
        if sys_flag.is_queued(fields["sys_flag"]):
            log.add(**fields)
        else:
            log.add(**fields, queue_offset=0)
    report = run(log.close(), directory / "out", tasks)

    expected = list(read_log(directory / "store"))
    assert_built(expected, directory / "out")
    assert len(records) == len(expected) == report.records
    assert not report.damage


@pytest.mark.parametrize("tasks", range(1, 9))
def test_a_file_without_holes_takes_one_pass(tasks: int, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for _ in range(20):
        log.add()
    store = log.close()
    (path,) = (store / "commitlog").iterdir()
    path.write_bytes(path.read_bytes())

    report = run(store, tmp_path / "out", tasks)

    assert (report.passes, report.damage) == (1, [])
    assert_built(list(read_log(store)), tmp_path / "out")
    assert log.end == report.log_end


def imitation(offset: int) -> bytes:
    """Return a record, good in itself, as it would be at a physical offset."""
    return record.encode(
        topic="Imitated", body=b"x", properties={"KEYS": "imitated"}, physical_offset=offset
    )


@pytest.mark.parametrize("tasks", range(2, 12))
def test_a_body_that_imitates_records_leaves_no_trace(tasks: int, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    log.add()
    at = log.end + record.MIN_SIZE - 3  # where the body will be
    body = b"".join(imitation(at + n * len(imitation(0))) for n in range(300))
    log.add(body=body, properties={})
    for _ in range(20):
        log.add()
    store = log.close()

    report = run(store, tmp_path / "out", tasks)

    assert report.passes > 1
    assert not (tmp_path / "out/consumequeue/Imitated").exists()
    assert_built(list(read_log(store)), tmp_path / "out")


def test_blank_entries_stand_before_a_queue_that_begins_later(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for n in range(13, 30):
        log.add(queue_offset=n)

    report = run(log.close(), tmp_path / "out")

    assert sorted(path.name for path in (tmp_path / "out/consumequeue/Topic/0").iterdir()) == [
        "00000000000000000200",
        "00000000000000000400",
    ]
    assert entries(tmp_path / "out", start=200)[:3] == [BLANK_ENTRY] * 3
    assert log.offsets[0] == entries(tmp_path / "out", start=200)[3].physical_offset
    assert (report.blank_entries, report.queue_entries) == (3, 17)


def test_blank_entries_stand_for_lost_records(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for _ in range(10):
        log.add()
    log.roll_out_of_recovery()
    store = log.close()
    change(store, log.offsets[4], bytes(8))

    report = run(store, tmp_path / "out")

    assert entries(tmp_path / "out")[4] == BLANK_ENTRY
    assert log.offsets[5] == entries(tmp_path / "out")[5].physical_offset
    (damage,) = report.damage
    assert (log.offsets[4], log.offsets[5] - log.offsets[4]) == (damage.offset, damage.length)
    assert report.records == 12


@pytest.mark.parametrize("tasks", [1, 2, 5, 9])
def test_of_two_records_with_one_queue_offset_the_first_is_kept(tasks: int, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for n in [*range(20), *range(15, 25), 3, 25]:
        log.add(queue_offset=n)
    store = log.close()

    report = run(store, tmp_path / "out", tasks)

    assert_built(list(read_log(store)), tmp_path / "out")
    assert (report.queue_entries, report.refused) == (26, 6)
    assert [log.offsets[n] for n in (*range(20, 25), 30)] == [d.offset for d in report.damage]


@pytest.mark.parametrize("wild", [5000, 1 << 40, (1 << 63) - 1, -1, -(1 << 63)])
@pytest.mark.parametrize("tasks", [1, 4])
def test_a_damaged_queue_offset_costs_one_entry(wild: int, tasks: int, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for n in range(30):
        log.add(queue_offset=n if n != 12 else wild)
    store = log.close()

    report = run(store, tmp_path / "out", tasks)

    expected = [each for each in read_log(store) if each.queue_offset != wild]
    assert queue_files(expected, FILE_SIZE) == read_queue_files(tmp_path / "out")
    assert (report.queue_entries, report.blank_entries, report.refused) == (29, 1, 1)
    assert [log.offsets[12]] == [damage.offset for damage in report.damage]


def test_offsets_that_no_log_can_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlake.jobs.rebuild.job._BLANKS_ALLOWED", 10_000)
    log = LogWriter(tmp_path / "store")
    for n in range(20):
        log.add("T", n, queue_offset=0)
        log.add("T", n, queue_offset=1000)

    with pytest.raises(JobError, match="cannot be rebuilt"):
        run(log.close(), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_damaged_body_before_recovery_keeps_its_entries(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for _ in range(10):
        log.add()
    log.roll_out_of_recovery()
    store = log.close()
    change(store, log.offsets[3] + record.MIN_SIZE - 3, b"!")

    report = run(store, tmp_path / "out")

    assert_built(list(read_log(store)), tmp_path / "out")
    assert (report.records, report.records_beyond) == (13, 0)
    assert [log.offsets[3]] == [damage.offset for damage in report.damage]


def test_after_a_crash_a_damaged_body_ends_the_log(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for _ in range(10):
        log.add()
    store = log.close()
    (store / "abort").write_text("1")
    change(store, log.offsets[3] + record.MIN_SIZE - 3, b"!")

    report = run(store, tmp_path / "out")

    assert_built(list(read_log(store, log.offsets[3])), tmp_path / "out")
    assert (3, 6, log.offsets[3]) == (report.records, report.records_beyond, report.log_end)


@pytest.mark.parametrize("topic", ["..", "a/b", "", "tab\t"])
def test_a_topic_that_is_no_directory_name_is_damage(topic: str, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    log.add()
    log.add(topic)
    log.add()

    report = run(log.close(), tmp_path / "out")

    assert [path.name for path in (tmp_path / "out/consumequeue").iterdir()] == ["Topic"]
    assert [log.offsets[1]] == [damage.offset for damage in report.damage]
    assert report.queue_entries == 2


def test_a_record_without_keys_opens_the_next_index_file(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for _ in range(13):
        log.add()  # three keys each: the file is full
    log.add(properties={})
    store = log.close()

    run(store, tmp_path / "out")

    assert_built(list(read_log(store)), tmp_path / "out")
    assert len(read_index_files(tmp_path / "out")) == 2


def test_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "store/commitlog").mkdir(parents=True)

    report = run(tmp_path / "store", tmp_path / "out")

    assert read_queue_files(tmp_path / "out") == {}
    assert read_index_files(tmp_path / "out") == []
    assert checkpoint.Checkpoint() == checkpoint.decode((tmp_path / "out/checkpoint").read_bytes())
    assert report.records == 0


def test_no_commit_log_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="there is no commitlog/"):
        run(tmp_path, tmp_path / "out")


def test_a_full_output_directory_is_refused(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    log.add()
    store = log.close()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()

    with pytest.raises(JobError, match="not empty"):
        run(store, tmp_path / "out")


def test_a_log_whose_first_segments_are_gone(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store", start=7 * SEGMENT)
    for n in range(100, 110):
        log.add(queue_offset=n)
    store = log.close()

    report = run(store, tmp_path / "out", 3)

    assert_built(list(read_log(store)), tmp_path / "out")
    assert report.log_end >= 7 * SEGMENT
