"""Several stores are one table: each message once, with the name of its broker."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import mqlake
from mqlake.errors import FormatError, StoreError
from mqlake.jobs.archive.job import archive
from mqlake.query.reading.conditions import AnyText
from mqlake.query.store.options import read_options
from mqlake.query.stores.places import are_many
from mqlake.query.stores.plan import plan_stores
from mqlake.query.stores.stores import check_many, find_stores, without_queues
from mqlake.query.stores.stream import StoresStream
from mqlake.storage.object_target import LocalTarget
from tests.golden import store
from tests.query.store.growing import BaseEngine, GrowingStore, KilledError
from tests.query.store.rows import Row, task_rows
from tests.query.store.truth import comparable, expected_rows

Given = Mapping[str, str]
COLUMNS = "keys,topic,queueId,queueOffset,physicalOffset,brokerName"


def rows_of(given_options: Given, pushed: Any = ()) -> list[Row]:
    stores = find_stores(given_options, streaming=False)
    options = list(stores.options.values())
    return [
        row
        for plan in plan_stores(options, pushed)
        for task in plan.tasks
        for row in task_rows(task, options[0])
    ]


class StoresEngine(BaseEngine[Given]):
    """Runs micro-batches over several stores."""

    def _new_stream(self) -> StoresStream:
        check_many(self._options)
        shared = read_options(without_queues(self._options), streaming=True)
        return StoresStream(self._options, shared)

    def _rows(self, task: Any) -> Iterable[Row]:
        (options, *_) = find_stores(self._options, streaming=True).options.values()
        return task_rows(task, options)

    def run_all(self) -> None:
        """Run micro-batches until there is nothing new; one that finds a store has no rows."""
        planned = -1
        while planned < len(self._offsets):
            planned = len(self._offsets)
            self.trigger()

    @property
    def by_broker(self) -> dict[str, list[str]]:
        """The keys of all rows, by broker, in log order."""
        found: dict[str, list[tuple[int, str]]] = {}
        for row in (row for batch in self.sink.values() for row in batch):
            found.setdefault(row["brokerName"], []).append((row["physicalOffset"], row["keys"][0]))
        return {name: [key for _, key in sorted(rows)] for name, rows in found.items()}


def grown(path: Path, seed: int, count: int = 40) -> GrowingStore:
    growing = GrowingStore(path, seed)
    growing.grow(count)
    return growing


@pytest.fixture
def two(tmp_path: Path) -> dict[str, GrowingStore]:
    return {
        name: grown(tmp_path / name / "store", seed)
        for seed, name in enumerate(("broker-a", "broker-b"), start=1)
    }


def paths(stores: Mapping[str, GrowingStore]) -> str:
    return ",".join(str(one.path) for one in stores.values())


def test_golden_stores_of_three_releases(tmp_path: Path) -> None:
    names = ("rmq49-clean", "rmq533-clean", "rmq5-clean")
    given_options = {"paths": json.dumps([str(store(name).path) for name in names])}
    rows = rows_of(given_options)
    for name in names:
        own = [comparable(row | {"brokerName": None}) for row in rows if row["brokerName"] == name]
        own.sort(key=lambda row: row["physicalOffset"])
        assert own == expected_rows(store(name))
    assert len(rows) == sum(len(expected_rows(store(name))) for name in names)


@pytest.mark.parametrize("form", ["commas", "list", "pattern", "url", "one"])
def test_how_stores_are_named(form: str, two: dict[str, GrowingStore], tmp_path: Path) -> None:
    (tmp_path / "broker-c").mkdir()  # no store
    given_options = {
        "commas": {"path": paths(two)},
        "list": {"paths": json.dumps([str(one.path) for one in two.values()])},
        "pattern": {"path": f"{tmp_path}/broker-?/store"},
        "url": {"path": f"file://{tmp_path}/*/store"},
        "one": {"path": f"{tmp_path}/broker-[a]/store"},
    }[form]
    assert are_many(given_options)
    rows = rows_of({**given_options, "columns": COLUMNS})
    expected = {name: one.keys for name, one in two.items() if form != "one" or name == "broker-a"}
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["brokerName"], []).append(row["keys"][0])
    assert found == expected


def test_archives_beside_directories(two: dict[str, GrowingStore], tmp_path: Path) -> None:
    end = archive(two["broker-b"].path, LocalTarget(tmp_path / "cold")).max_offset
    rows = rows_of({"path": f"{two['broker-a'].path},{tmp_path / 'cold'}", "columns": COLUMNS})
    assert {row["brokerName"] for row in rows} == {"broker-a", "cold"}
    assert max(row["physicalOffset"] for row in rows if row["brokerName"] == "cold") < end


def test_the_name_of_a_broker_is_that_of_its_settings(two: dict[str, GrowingStore]) -> None:
    config = two["broker-a"].path / "config"
    config.mkdir(exist_ok=True)
    (config / "broker.properties").write_text("brokerName=orders-0\n")
    stores = find_stores({"path": paths(two)}, streaming=False)
    assert list(stores.options) == ["broker-b", "orders-0"]


def test_filters_narrow_each_store(two: dict[str, GrowingStore]) -> None:
    rows = rows_of({"path": paths(two), "columns": COLUMNS}, (AnyText("topic", ("A",)),))
    for name, one in two.items():
        own = [row for row in rows if row["brokerName"] == name and row["topic"] == "A"]
        assert len(own) == sum(message.topic == "A" for message in one.messages)


def test_offsets_by_broker(two: dict[str, GrowingStore]) -> None:
    offsets = {"A": {"broker-a": {"0": 3}, "broker-b": {"0": -2}}}
    options = {"path": paths(two), "columns": COLUMNS, "startingOffsets": json.dumps(offsets)}
    rows = [row for row in rows_of(options) if (row["topic"], row["queueId"]) == ("A", 0)]
    firsts = {
        name: min(row["queueOffset"] for row in rows if row["brokerName"] == name) for name in two
    }
    assert firsts == {"broker-a": 3, "broker-b": 0}

    assigned = {**options, "assign": json.dumps({"A": {"broker-b": [1]}})}
    del assigned["startingOffsets"]
    found = {(row["brokerName"], row["topic"], row["queueId"]) for row in rows_of(assigned)}
    assert found == {("broker-b", "A", 1)}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"startingOffsets": '{"A": {"0": 3}}'}, "A-0 may be in several stores: write"),
        ({"startingOffsets": '{"A": {"broker-x": {"0": 3}}}'}, "broker 'broker-x' has no store"),
        (
            {"brokerName": "x"},
            "option brokerName is valid for one store only, but path",
        ),
        ({"archive": "x"}, "option archive is valid for one store"),
        ({"paths": "x"}, "is not a JSON list of strings"),
    ],
)
def test_options_that_several_stores_refuse(
    more: Given, message: str, two: dict[str, GrowingStore]
) -> None:
    with pytest.raises(FormatError, match=message):
        rows_of({"path": paths(two), **more})


def test_one_store_twice_is_refused(two: dict[str, GrowingStore], tmp_path: Path) -> None:
    path = two["broker-a"].path
    with pytest.raises(FormatError, match="both belong to broker broker-a"):
        rows_of({"path": f"{path},{path}/"})
    shutil.copytree(path, tmp_path / "copy")
    two["broker-a"].drop_first_segment()
    with pytest.raises(StoreError, match="are the same store, or copies of it"):
        rows_of({"path": f"{path},{tmp_path / 'copy'}"})
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(StoreError, match="are the same store, or copies of it"):
        rows_of({"path": f"{path},{tmp_path / 'link'}"})


def test_a_topic_has_to_be_in_one_of_the_stores(two: dict[str, GrowingStore]) -> None:
    two["broker-b"].grow(5, ("Only",))
    rows = rows_of({"path": paths(two), "subscribe": "Only", "columns": COLUMNS})
    assert [row["brokerName"] for row in rows] == ["broker-b"] * 5
    with pytest.raises(StoreError, match="topic 'None' does not exist"):
        rows_of({"path": paths(two), "subscribe": "None"})


def streaming(path: str, **more: Any) -> dict[str, str]:
    given_options = {"startingOffsets": "earliest", "columns": COLUMNS, "path": path}
    return given_options | {name: str(value) for name, value in more.items()}


STEP = st.tuples(
    st.sampled_from(["grow", "grow", "new", "trigger", "planned", "written", "restart"]),
    st.integers(0, 4),
)


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(steps=st.lists(STEP, max_size=14), most=st.sampled_from([None, 1, 2, 30]))
def test_a_stream_has_every_message_of_every_store_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], most: int | None
) -> None:
    root = tmp_path_factory.mktemp("stores")
    stores = {f"broker-{seed}": grown(root / f"broker-{seed}", seed, 12) for seed in (1, 2)}
    limit = {} if most is None else {"maxOffsetsPerTrigger": most}
    query = StoresEngine(streaming(f"{root}/broker-*", **limit))
    for step, number in steps:
        if step == "grow":
            list(stores.values())[number % len(stores)].grow(4)
        elif step == "new":
            seed = len(stores) + 1
            stores[f"broker-{seed}"] = grown(root / f"broker-{seed}", seed, 6)
        elif step == "restart":
            query.restart()
        else:
            try:
                query.trigger(None if step == "trigger" else step)
            except KilledError:
                query.restart()
    query.run_all()
    assert query.by_broker == {name: one.keys for name, one in stores.items()}
    assert most is None or max(map(len, query.sink.values())) <= most


def test_a_store_that_vanishes_is_a_loss(two: dict[str, GrowingStore], tmp_path: Path) -> None:
    query = StoresEngine(streaming(f"{tmp_path}/*/store"))
    query.run_all()
    shutil.rmtree(two["broker-b"].path)
    two["broker-a"].grow(3)
    with pytest.raises(StoreError, match="the store of broker broker-b, which this query has read"):
        query.trigger()
    query.restart(streaming(f"{tmp_path}/*/store", failOnDataLoss=False))
    query.run_all()
    assert query.by_broker["broker-a"] == two["broker-a"].keys


def test_another_store_of_the_same_name_is_refused(
    two: dict[str, GrowingStore], tmp_path: Path
) -> None:
    query = StoresEngine(streaming(paths(two)))
    query.run_all()
    shutil.rmtree(two["broker-b"].path)
    grown(two["broker-b"].path, 9, 60)
    with pytest.raises(StoreError, match="is not the one that this query has read"):
        query.trigger()


def test_checkpoints_of_one_store_and_of_several_are_told_apart(
    two: dict[str, GrowingStore],
) -> None:
    query = StoresEngine(streaming(paths(two)))
    query.run_all()
    with pytest.raises(StoreError, match="the checkpoint is not one over several stores"):
        query.stream.position({"physicalOffset": 0}, query.stream.most)


def test_available_now_is_what_was_there(two: dict[str, GrowingStore], tmp_path: Path) -> None:
    query = StoresEngine(streaming(f"{tmp_path}/*/store", maxOffsetsPerTrigger=7))
    before = {name: one.keys for name, one in two.items()}
    query.stream.stop_at_end()
    two["broker-a"].grow(20)
    grown(tmp_path / "broker-c" / "store", 3)
    query.run_all()
    assert query.by_broker == before


def test_without_spark(two: dict[str, GrowingStore], tmp_path: Path) -> None:
    columns = ["keys", "brokerName", "topic"]
    for path in ([one.path for one in two.values()], f"{tmp_path}/*/store"):
        table = mqlake.open(path, columns=columns).to_arrow()
        found = {
            name: [row["keys"][0] for row in table.to_pylist() if row["brokerName"] == name]
            for name in two
        }
        assert found == {name: one.keys for name, one in two.items()}
    opened = mqlake.open([one.path for one in two.values()], columns=columns)
    only = opened.dataset().to_table(filter=pc.field("brokerName") == "broker-b")
    assert len(only) == len(two["broker-b"].keys)
    assert len(opened.explain().splitlines()) == 2
    with pytest.raises(StoreError, match="no store matches this pattern"):
        mqlake.open(f"{tmp_path}/nothing-*")


def test_new_stores_are_no_copies_of_each_other(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name / "commitlog").mkdir(parents=True)
        (tmp_path / name / "commitlog" / ("0" * 20)).write_bytes(bytes(4096))
    assert rows_of({"path": f"{tmp_path}/*", "columns": COLUMNS}) == []


@pytest.mark.parametrize("name", ["a,b", "store[1]", "what?"])
def test_a_directory_whose_name_looks_like_a_pattern(name: str, tmp_path: Path) -> None:
    growing = grown(tmp_path / name, 1)
    table = mqlake.open(growing.path, columns=["keys"])
    assert table.reader().read_all().num_rows == len(growing.keys)


def test_the_query_of_a_url_is_no_pattern() -> None:
    assert not are_many({"path": "s3://bucket/store?region=x"})
    assert are_many({"path": "s3://bucket/*/store?region=x"})


def test_a_broker_that_gets_another_name(tmp_path: Path) -> None:
    growing = grown(tmp_path / "a" / "store", 1)
    given_options = {"path": f"{tmp_path}/*/store", "startingOffsets": "earliest"}
    query = StoresEngine({**given_options, "columns": COLUMNS})
    query.run_all()
    before = len(growing.keys)
    (growing.path / "config").mkdir(exist_ok=True)
    (growing.path / "config" / "broker.properties").write_text("brokerName=b\n")
    growing.grow(5)
    query.run_all()
    query.restart()
    growing.grow(5)
    query.run_all()
    assert query.by_broker == {"a": growing.keys[:before], "b": growing.keys[before:]}
