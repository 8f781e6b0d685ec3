"""Tables that follow those of a master: replaced as a whole, with its version, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.formats import fastjson
from mqlake.formats.config import DataVersion
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from tests.store.test_config_store import open_config, read

MASTERS = DataVersion(7, 2, 1_700_000_000_000)
PLAIN = {"counter": 7, "stateVersion": 2, "timestamp": 1_700_000_000_000}


def follow(table: ConsumerOffsetTable, offsets: dict[str, dict[int, int]]) -> None:
    for _ in table.follow({key: dict(queues) for key, queues in offsets.items()}, MASTERS):
        pass


def test_all_tables_are_kept_with_the_masters_version(tmp_path: Path) -> None:
    config = open_config(tmp_path)
    config.topics.ensure("Old", 1)
    config.groups.put(SubscriptionGroup("old"))
    config.groups.forbid("old", "Old", 4)
    config.consumer_offsets.commit("old", "Old", 0, 1)
    config.delay_offsets.set(1, 2)
    config.persist()
    list(config.topics.follow({"New": Topic("New", 2, 2)}, MASTERS))
    list(config.groups.follow({"new": SubscriptionGroup("new")}, MASTERS))
    config.groups.follow_forbidden({"new": {"New": 4}, "none": {}})
    follow(config.consumer_offsets, {"New@new": {0: 5}})
    config.delay_offsets.follow({2: 3}, MASTERS)
    config.persist()
    again = open_config(tmp_path)
    assert list(again.topics) == ["New"]
    assert list(again.groups) == ["new"]
    assert again.groups.forbidden_table() == {"new": {"New": 4}}
    assert dict(again.consumer_offsets.committed()) == {"New@new": {0: 5}}
    assert again.consumer_offsets.groups_of("Old") == set()
    assert again.delay_offsets.items() == [(2, 3)]
    for name in ("topics", "subscriptionGroup", "consumerOffset", "delayOffset"):
        assert read(tmp_path, f"{name}.json")["dataVersion"] == PLAIN, name


def test_members_that_only_the_replaced_entry_had_are_gone(tmp_path: Path) -> None:
    config = open_config(tmp_path)
    config.topics.put(Topic("Same", 1, 1))
    config.topics.put(Topic("Changed", 1, 1))
    config.persist()
    path = tmp_path / "config" / "topics.json"
    table = read(tmp_path, "topics.json")
    for topic in table["topicConfigTable"].values():
        topic["later"] = True
    path.write_text(fastjson.dumps(table))
    config = open_config(tmp_path)
    list(
        config.topics.follow(
            {"Same": Topic("Same", 1, 1), "Changed": Topic("Changed", 2, 2)}, MASTERS
        )
    )
    config.persist()
    found = read(tmp_path, "topics.json")["topicConfigTable"]
    assert {name for name, topic in found.items() if "later" in topic} == {"Same"}


def test_nothing_is_written_if_nothing_changed(tmp_path: Path) -> None:
    config = open_config(tmp_path)
    follow(config.consumer_offsets, {"T@g": {0: 5}})
    config.delay_offsets.follow({1: 2}, MASTERS)
    config.persist()
    follow(config.consumer_offsets, {"T@g": {0: 5}})
    config.delay_offsets.follow({1: 2}, MASTERS)
    assert config.consumer_offsets.write() is None
    assert config.delay_offsets.write() is None


TABLES = st.dictionaries(
    st.sampled_from(["T@g", "T@h", "U@g"]),
    st.dictionaries(st.integers(0, 3), st.integers(0, 9), min_size=1),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(steps=st.lists(st.tuples(TABLES, st.booleans()), max_size=6))
def test_the_table_is_the_masters_after_any_changes(
    steps: list[tuple[dict[str, dict[int, int]], bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("tables")
    config = open_config(path)
    table = config.consumer_offsets
    for offsets, is_written in steps:
        table.commit("g", "T", 1, 99)
        pending = table.write() if is_written else None
        follow(table, offsets)
        if pending is not None:
            pending.complete()
            kept = open_config(path).consumer_offsets
            assert kept.query("g", "T", 1) == 99, "what was to be written does not change"
        assert dict(table.committed()) == offsets
        assert len(table) == sum(map(len, offsets.values()))
    table.commit("h", "T", 0, 1)
    config.persist()
    assert dict(open_config(path).consumer_offsets.committed()) == dict(table.committed())
