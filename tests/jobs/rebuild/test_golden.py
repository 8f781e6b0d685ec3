"""What is rebuilt equals, byte for byte, what RocketMQ itself wrote or rebuilt."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from mqlake.formats import checkpoint, index_file
from mqlake.formats.dialect import Dialect
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import RebuildReport, rebuild
from tests.golden import CLEAN, TORN_VARIANTS, GoldenStore, store
from tests.golden import recovery as recorded_recovery
from tests.jobs.model import (
    index_files,
    queue_files,
    read_index_files,
    read_log,
    read_queue_files,
)

DERIVED = ("consumequeue", "index", "checkpoint")


def run(golden: GoldenStore, out: Path, tasks: int | None = None) -> RebuildReport:
    return rebuild(golden.path, LocalEngine(2), out=out, tasks=tasks)


def digests(files: list[dict[str, object]], directory: str) -> dict[str, object]:
    return {
        str(file["path"]): file["sha256"]
        for file in files
        if str(file["path"]).startswith(f"{directory}/")
    }


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("name", CLEAN)
def test_files_equal_those_of_rocketmq(name: str, tmp_path: Path) -> None:
    golden = store(name)

    report = run(golden, tmp_path / "out")

    expected = digests(golden.files(), "consumequeue")
    built = read_queue_files(tmp_path / "out")
    assert expected == {f"consumequeue/{path}": digest(data) for path, data in built.items()}
    expected = digests(golden.files(), "index")
    indexes = [digest(data) for data in read_index_files(tmp_path / "out")]
    assert [expected[path] for path in sorted(expected)] == indexes
    assert (1, [], len(golden.messages())) == (report.passes, report.damage, report.records)
    assert golden.walk()["endOffset"] == report.log_end


def test_files_equal_those_that_rocketmq_rebuilt(tmp_path: Path) -> None:
    run(store("rmq5-clean"), tmp_path / "out")

    after = recorded_recovery("rmq5-rebuild")["filesAfterCleanShutdown"]
    expected = digests(after, "consumequeue")
    built = read_queue_files(tmp_path / "out")
    assert expected == {f"consumequeue/{path}": digest(data) for path, data in built.items()}
    indexes = digests(after, "index")
    assert [indexes[path] for path in sorted(indexes)] == [
        digest(data) for data in read_index_files(tmp_path / "out")
    ]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 31])
def test_any_number_of_tasks_writes_the_same_bytes(tasks: int, tmp_path: Path) -> None:
    golden = store("rmq5-clean")

    run(golden, tmp_path / "out", tasks)

    assert read_queue_files(golden.path) == read_queue_files(tmp_path / "out")
    assert read_index_files(golden.path) == read_index_files(tmp_path / "out")


def test_without_derived_files_the_defaults_are_taken(tmp_path: Path) -> None:
    golden = store("rmq5-default")
    (tmp_path / "store").mkdir()
    (tmp_path / "store/commitlog").symlink_to(golden.path / "commitlog")

    report = rebuild(tmp_path / "store", LocalEngine(2), out=tmp_path / "out")

    assert Dialect.V5_5 is report.settings.dialect
    assert read_queue_files(golden.path) == read_queue_files(tmp_path / "out")
    assert read_index_files(golden.path) == read_index_files(tmp_path / "out")


def test_sizes_and_dialect_can_be_given(tmp_path: Path) -> None:
    golden = store("rmq5-clean")

    rebuild(
        golden.path,
        LocalEngine(2),
        out=tmp_path / "out",
        dialect=Dialect.V5_3,
        queue_file_size=2001,
        hash_slots=77,
        max_index=500,
    )

    records = list(read_log(golden.path))
    assert queue_files(records, 2020) == read_queue_files(tmp_path / "out")
    assert index_files(records, 77, 500, Dialect.V5_3) == read_index_files(tmp_path / "out")


def test_a_killed_store_gets_the_entries_that_rocketmq_loses(tmp_path: Path) -> None:
    golden = store("rmq5-killed")

    report = run(golden, tmp_path / "out")

    records = list(read_log(golden.path))
    assert len(records) == report.records
    assert queue_files(records, 20000) == read_queue_files(tmp_path / "out")
    built = read_index_files(tmp_path / "out")
    assert index_files(records, 1000, 4000, Dialect.V5_5) == built
    last = index_file.decode_header(built[-1])
    # RocketMQ's own recovery begins the last file at 4194304 and has 1321 entries in it.
    assert (last.begin_physical_offset, last.index_count - 1) == (4155810, 1351)


@pytest.mark.parametrize("tasks", [None, 9])
@pytest.mark.parametrize("name", TORN_VARIANTS)
def test_a_torn_log_is_rebuilt_up_to_where_rocketmq_cuts_it(
    name: str, tasks: int | None, tmp_path: Path
) -> None:
    golden = store(name)

    report = run(golden, tmp_path / "out", tasks)

    recovered = golden.recovery()["afterDispatch"]["commitLogMaxOffset"]
    assert recovered == report.log_end
    records = list(read_log(golden.path, recovered))
    assert queue_files(records, 20000) == read_queue_files(tmp_path / "out")
    assert index_files(records, 1000, 4000, Dialect.V5_5) == read_index_files(tmp_path / "out")
    assert 4 * name.endswith("flip5") == report.records_beyond
    (damage,) = report.damage
    assert recovered == 5242880 + damage.offset


@pytest.mark.parametrize("name", CLEAN)
def test_the_checkpoint_says_that_all_is_dispatched(name: str, tmp_path: Path) -> None:
    golden = store(name)

    report = run(golden, tmp_path / "out")

    data = (tmp_path / "out/checkpoint").read_bytes()
    last = golden.messages()[-1]
    time, offset = last["storeTimestamp"], last["physicalOffset"]
    stamp = checkpoint.decode(data)
    assert len(data) == checkpoint.SIZE
    assert (time, time, time) == stamp[:3]
    is_5x, is_55 = report.settings.dialect is not Dialect.V4_9, name.startswith("rmq5-")
    assert (0, offset * is_5x, offset * is_55) == stamp[3:]


def test_in_place_the_old_files_are_replaced(tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    copy = golden.copy(tmp_path / "store")
    victim = next(iter(sorted((copy / "consumequeue/TopicA/0").iterdir())))
    victim.write_bytes(b"\xff" * 20000)
    shutil.rmtree(copy / "consumequeue/TopicB")
    next(iter(sorted((copy / "index").iterdir()))).unlink()
    before = {path.name for path in copy.iterdir()}

    report = rebuild(copy, LocalEngine(2))

    assert str(copy) == report.output
    assert read_queue_files(golden.path) == read_queue_files(copy)
    assert read_index_files(golden.path) == read_index_files(copy)
    assert before == {path.name for path in copy.iterdir()}
