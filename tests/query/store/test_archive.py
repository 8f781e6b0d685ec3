"""Directory, archive, and both together have the same rows, also while all of them change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mqlake.errors import StoreError
from mqlake.jobs.archive.job import archive
from mqlake.query.reading.conditions import AnyText, HasKey
from mqlake.storage.object_target import LocalTarget
from tests.golden import NAMES, store
from tests.query.store.growing import Engine, GrowingStore, KilledError
from tests.query.store.rows import batch_rows, options_of
from tests.query.store.truth import comparable, expected_rows

SELECTION = (AnyText("topic", ("TopicA", "TopicB")), HasKey(("键-16", "dup-3", "key-1")))


class ArchivedStore(GrowingStore):
    """A growing store whose segments are archived, and removed afterwards."""

    def __init__(self, path: Path) -> None:
        super().__init__(path / "store")
        self.archive_path = path / "archive"
        self._removed: set[Path] = set()

    def grow(self, count: int, topics: tuple[str, ...] = ("A", "B")) -> None:
        super().grow(count, topics)
        for path in self._removed:
            path.unlink(missing_ok=True)

    def archive(self) -> None:
        """Copy what is closed."""
        archive(self.path, LocalTarget(self.archive_path))

    def expire(self, most: int) -> None:
        """Remove archived segments, the oldest first."""
        archived = {path.name for path in (self.archive_path / "commitlog").glob("*")}
        segments = sorted((self.path / "commitlog").iterdir())
        for path in [path for path in segments if path.name in archived][:most]:
            self.remove(path)

    def remove(self, segment: Path) -> None:
        """Remove a segment for good."""
        segment.unlink()
        self._removed.add(segment)


@pytest.mark.parametrize("name", NAMES)
def test_golden_stores(name: str, tmp_path: Path) -> None:
    golden = store(name)
    path, to = golden.copy(tmp_path / "store"), tmp_path / "archive"
    end = archive(path, LocalTarget(to)).max_offset
    expected = expected_rows(golden)
    closed = [row for row in expected if row["physicalOffset"] < end]
    assert [comparable(row) for row in batch_rows(to)] == closed

    for segment in sorted((path / "commitlog").iterdir()):
        if int(segment.name) < end:
            segment.unlink()
    both = {"archive": to, "minPartitions": 3}
    assert [comparable(row) for row in batch_rows(path, **both)] == expected


@pytest.mark.parametrize("access", ["scan", "queues", "index"])
@pytest.mark.parametrize("name", ["rmq49-clean", "rmq533-clean", "rmq5-clean"])
def test_access_paths(name: str, access: str, tmp_path: Path) -> None:
    golden = store(name)
    path, to = golden.copy(tmp_path / "store"), tmp_path / "archive"
    end = archive(path, LocalTarget(to)).max_offset
    rows = [row for row in batch_rows(path, SELECTION) if has_key(row)]
    for segment in sorted((path / "commitlog").iterdir()):
        if int(segment.name) < end:
            segment.unlink()
    found = batch_rows(path, SELECTION, archive=to, accessPath=access)
    assert [row for row in found if has_key(row)] == rows
    found = batch_rows(to, SELECTION, accessPath=access)
    assert [row for row in found if has_key(row)] == [
        row for row in rows if row["physicalOffset"] < end
    ]


def has_key(row: dict[str, Any]) -> bool:
    return row["topic"] in ("TopicA", "TopicB") and not {"键-16", "dup-3", "key-1"}.isdisjoint(
        row["keys"]
    )


STEP = st.tuples(
    st.sampled_from(["grow", "archive", "expire", "trigger", "planned", "written", "restart"]),
    st.integers(1, 30),
)


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(steps=st.lists(STEP, max_size=16), most=st.sampled_from([None, 7, 50]))
def test_a_stream_over_both_has_every_message_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], most: int | None
) -> None:
    growing = ArchivedStore(tmp_path_factory.mktemp("archived"))
    growing.grow(60)
    growing.archive()
    limit = {} if most is None else {"maxOffsetsPerTrigger": most}
    given_options = {"startingOffsets": "earliest", "columns": "keys,topic,physicalOffset", **limit}
    query = Engine(
        options_of(growing.path, streaming=True, archive=growing.archive_path, **given_options)
    )
    for step, count in steps:
        if step == "grow":
            growing.grow(count, ("A", "B", f"New{count}"))
        elif step == "archive":
            growing.archive()
        elif step == "expire":
            growing.expire(count)
        elif step == "restart":
            query.restart()
        else:
            try:
                query.trigger(None if step == "trigger" else step)
            except KilledError:
                query.restart()
    query.run_all()
    assert query.keys == growing.keys


def test_a_segment_that_is_removed_after_planning_is_the_archives(tmp_path: Path) -> None:
    from mqlake.query.store.plan import plan_batch
    from tests.query.store.rows import task_rows

    growing = ArchivedStore(tmp_path)
    growing.grow(60)
    growing.archive()
    growing.grow(60)
    options = options_of(growing.path, archive=growing.archive_path, columns="keys,physicalOffset")
    tasks = plan_batch(options).tasks
    growing.archive()
    growing.expire(100)
    rows = [row for task in tasks for row in task_rows(task, options)]
    assert [row["keys"][0] for row in rows] == growing.keys


def test_what_neither_has_is_a_loss(tmp_path: Path) -> None:
    growing = ArchivedStore(tmp_path)
    growing.grow(60)
    growing.archive()
    growing.grow(120)
    segments = sorted((growing.path / "commitlog").iterdir())
    for segment in segments[:-1]:
        segment.unlink()
    with pytest.raises(StoreError, match=r"the log lacks \d+ bytes from \d+ on"):
        batch_rows(growing.path, archive=growing.archive_path)
    rows = batch_rows(growing.path, archive=growing.archive_path, failOnDataLoss=False)
    assert 0 < len(rows) < len(growing.keys)
