"""Each way to the messages gives the rows that all rows, filtered afterwards, give."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.errors import StoreError
from mqlake.query.reading.conditions import (
    MOST,
    AnyNumber,
    AnyText,
    Between,
    Condition,
    HasKey,
    InQueues,
    Selection,
    TopicMatches,
    key_texts,
    numbers,
    texts,
)
from mqlake.query.store.access import access, boundaries, queue_path
from mqlake.query.store.plan import plan_batch
from tests.golden import store
from tests.query.store.meaning import holds
from tests.query.store.rows import Row, batch_rows, options_of

STORES = (
    "rmq5-clean",
    "rmq49-clean",
    "rmq5-killed",
    "rmq5-torn",
    "rmq5-torn.variant-flip5",
    "without queues",
    "without a queue",
    "queues cut",
    "entries zeroed",
    "entries changed",
    "without index",
    "oldest index only",
)
COLUMNS = "topic,tags,keys,msgId,uniqKey,queueId,queueOffset,physicalOffset,storeTimestamp,sysFlag"


@pytest.fixture(autouse=True, scope="module")
def small_steps() -> Iterator[None]:
    """Let the golden stores be worth what large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_path, "_LEAST_SKIPPED", 1)
        patch.setattr(access, "WORTH_A_LOOK", 0)
        patch.setattr(access, "_SEEK", 0)
        patch.setattr(boundaries, "CLOCK_STEP", 0)
        yield


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("stores")
    return {name: _path(name, root) for name in STORES}


def _path(name: str, root: Path) -> Path:
    if name.startswith("rmq"):
        return store(name).path
    path = store("rmq5-clean").copy(root / name)
    BREAK[name](path)
    return path


def _without_queues(path: Path) -> None:
    shutil.rmtree(path / "consumequeue")


def _without_a_queue(path: Path) -> None:
    for queue in sorted((path / "consumequeue").glob("Topic*/*"))[::2]:
        shutil.rmtree(queue)


def _queues_cut(path: Path) -> None:
    for file in sorted(path.glob("consumequeue/Topic*/*/*"))[::3]:
        file.write_bytes(file.read_bytes()[:150])


def _entries_zeroed(path: Path) -> None:
    for file in sorted(path.glob("consumequeue/Topic*/*/*"))[::2]:
        data = bytearray(file.read_bytes())
        data[40:80] = bytes(40)
        file.write_bytes(data)


def _entries_changed(path: Path) -> None:
    """Change a bit of offset or size: of the tags code, no reader could tell."""
    for number, file in enumerate(sorted(path.glob("consumequeue/Topic*/*/*"))):
        data = bytearray(file.read_bytes())
        data[20 * number % 200 + number % 12] ^= 1 << number % 8
        file.write_bytes(data)


def _without_index(path: Path) -> None:
    shutil.rmtree(path / "index")


def _oldest_index_only(path: Path) -> None:
    for file in sorted((path / "index").iterdir())[1:]:
        file.unlink()


BREAK = {
    "without queues": _without_queues,
    "without a queue": _without_a_queue,
    "queues cut": _queues_cut,
    "entries zeroed": _entries_zeroed,
    "entries changed": _entries_changed,
    "without index": _without_index,
    "oldest index only": _oldest_index_only,
}


@pytest.fixture(scope="module")
def all_rows(paths: dict[str, Path]) -> dict[str, list[Row]]:
    return {name: _rows(path) for name, path in paths.items()}


def _rows(path: Path, pushed: Selection = (), **options: Any) -> list[Row]:
    return batch_rows(path, pushed, columns=COLUMNS, failOnDataLoss=False, **options)


@st.composite
def selections(draw: st.DrawFn, rows: list[Row]) -> Selection:
    numbers = st.integers(0, len(rows) - 1)
    row, other = rows[draw(numbers)], rows[draw(numbers)]
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    chance = random.Random(draw(st.integers(0, 1 << 32)))
    return tuple(_condition(chance, kind, row, other) for kind in kinds)


KINDS = (
    *("topic", "tags", "msgId", "uniqKey", "queueId", "queueOffset", "physicalOffset"),
    *("storeTimestamp", "keys", "pattern", "numbers", "queues", "assign"),
)


def _condition(chance: random.Random, kind: str, row: Row, other: Row) -> Condition:
    if kind in ("topic", "tags", "msgId", "uniqKey"):
        texts = [text for text in (row[kind], other[kind]) if text is not None]
        return AnyText(kind, tuple(texts[: chance.randint(1, 2)]) or ("none such",))
    if kind == "keys":
        keys = [*row["keys"], *other["keys"], row["uniqKey"] or "x"]
        return HasKey((chance.choice(keys), chance.choice(keys)))
    if kind == "pattern":
        return TopicMatches(re.escape(row["topic"][:5]) + ".*")
    if kind == "numbers":
        column = chance.choice(["physicalOffset", "queueOffset", "storeTimestamp"])
        return AnyNumber(column, (row[column], other[column], row[column] + chance.randint(-1, 1)))
    if kind in ("queues", "assign"):
        ranges = {}
        for one in (row, other):
            start = chance.randint(0, one["queueOffset"] + 1)
            ranges[one["topic"], one["queueId"]] = (start, start + chance.randint(0, 50))
        return InQueues(ranges, others=kind == "queues")
    ends = sorted((row[kind], other[kind]))
    low = chance.choice([ends[0], ends[0] + 1, -MOST])
    high = chance.choice([ends[1], ends[1] - 1, ends[0] + 2, MOST])
    return Between(kind, low, high)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", STORES)
def test_every_path_gives_the_rows_of_a_filter_afterwards(
    name: str, paths: dict[str, Path], all_rows: dict[str, list[Row]], data: st.DataObject
) -> None:
    check_every_path(name, paths, all_rows, data)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", STORES)
def test_every_path_gives_the_rows_of_many_filters_afterwards(
    name: str, paths: dict[str, Path], all_rows: dict[str, list[Row]], data: st.DataObject
) -> None:
    check_every_path(name, paths, all_rows, data)


def check_every_path(
    name: str, paths: dict[str, Path], all_rows: dict[str, list[Row]], data: st.DataObject
) -> None:
    rows = all_rows[name]
    selection = data.draw(selections(rows))
    asked = data.draw(st.sampled_from(["auto", "scan", "queues", "index", "points"]))
    partitions = data.draw(st.sampled_from([1, 3]))

    if asked == "index" and (name == "without index" or key_texts(selection) is None):
        with pytest.raises(StoreError, match="accessPath=index is not possible"):
            _rows(paths[name], selection, accessPath=asked)
        return
    listed = numbers(selection, "physicalOffset"), texts(selection, "msgId")
    if asked == "points" and listed == (None, None):
        with pytest.raises(StoreError, match="accessPath=points is not possible"):
            _rows(paths[name], selection, accessPath=asked)
        return
    found = _rows(paths[name], selection, accessPath=asked, minPartitions=partitions)

    assert found == [row for row in rows if all(holds(one, row) for one in selection)]


@pytest.mark.parametrize(
    ("selection", "path"),
    [
        ((), "scan"),
        ((AnyText("topic", ("TopicB",)),), "queues"),
        ((AnyText("tags", ("TagA",)),), "queues"),
        ((Between("queueOffset", 10, 12),), "queues"),
        ((AnyNumber("physicalOffset", (42367, 1759466)),), "points"),
        ((AnyText("msgId", ("7F00000100005208000000000000A57F",)),), "points"),
        ((HasKey(("键-16",)),), "index"),
        (
            (AnyText("uniqKey", ("FD00000000000000000000000000000276CD5FFD2B276640D63C001B",)),),
            "index",
        ),
    ],
)
def test_the_cheapest_path_is_taken(selection: Selection, path: str) -> None:
    plan = plan_batch(options_of(store("rmq5-clean").path), selection)
    assert plan.access.path == path
    assert plan.explain().startswith(f"access path {path}: ")
    if path != "scan":
        assert plan.access.bytes_read < plan.access.considered["scan"]


def test_times_and_offsets_shorten_a_scan() -> None:
    golden = store("rmq5-clean")
    messages = golden.messages()
    middle = messages[len(messages) // 2]
    options = options_of(golden.path, accessPath="scan")
    whole = plan_batch(options).access.bytes_read
    for selection in (
        (Between("storeTimestamp", low=middle["storeTimestamp"]),),
        (Between("storeTimestamp", high=middle["storeTimestamp"]),),
        (Between("physicalOffset", high=middle["physicalOffset"]),),
        (Between("physicalOffset", low=middle["physicalOffset"]),),
    ):
        assert plan_batch(options, selection).access.bytes_read < 0.6 * whole


def test_options_narrow_as_filters_do(paths: dict[str, Path]) -> None:
    path = paths["rmq5-clean"]
    rows = _rows(path)
    row = next(row for row in rows if row["keys"] and row["tags"])
    topic, tags = row["topic"], row["tags"]

    def chosen(**wanted: Any) -> list[Row]:
        return [one for one in rows if all(one[name] == value for name, value in wanted.items())]

    assert _rows(path, subscribe=topic) == chosen(topic=topic)
    assert _rows(path, topic=f"{topic},none") == chosen(topic=topic)
    assert _rows(path, subscribePattern=topic[:-1] + "[" + topic[-1] + "]") == chosen(topic=topic)
    assert _rows(path, tags=tags) == _rows(path, subExpression=f"{tags} || x") == chosen(tags=tags)
    assert _rows(path, tags="*") == rows
    assert _rows(path, keys=f"x {row['keys'][0]}") == [
        one for one in rows if row["keys"][0] in one["keys"]
    ]
    assert _rows(path, assign=f'{{"{topic}": [1]}}') == chosen(topic=topic, queueId=1)
