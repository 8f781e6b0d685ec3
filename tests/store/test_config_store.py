"""The tables of `config/`: loaded as RocketMQ left them, written so that it loads them again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import DiskError, StoreError
from mqlake.formats import fastjson
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import DiskUsage
from mqlake.store.config.consumer_offsets import COMMITS_A_VERSION
from mqlake.store.config.delay_offsets import CHANGES_A_VERSION
from mqlake.store.config_store import ConfigStore
from mqlake.store.live_settings import current
from mqlake.store.services import Services
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.golden import store

NOW = 1_800_000_000_000
NAMES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")


class FullDisk(LocalOwnedDirectory):
    """A directory that refuses new files while it is full."""

    is_full = False

    def create(self, path: str, size: int) -> Any:
        if self.is_full:
            raise DiskError(f"{path}: No space left on device", 28)
        return super().create(path, size)

    def usage(self) -> DiskUsage:
        return DiskUsage(100, 0 if self.is_full else 50)


def open_config(path: Path, clock: ManualClock | None = None) -> ConfigStore:
    return ConfigStore.load(
        LocalOwnedDirectory(path), current(StoreSettings()), clock or ManualClock(NOW)
    )


def read(path: Path, name: str) -> dict[Any, Any]:
    value = fastjson.loads((path / "config" / name).read_bytes())
    assert isinstance(value, dict)
    return value


@pytest.fixture
def golden_config(tmp_path: Path) -> Path:
    """A copy of the `config/` that RocketMQ 5.5 wrote."""
    shutil.copytree(store("rmq5-clean").path / "config", tmp_path / "config")
    return tmp_path


def change_all(config: ConfigStore) -> None:
    config.topics.put(Topic(topic_name="Fresh", read_queue_nums=3, write_queue_nums=3))
    config.groups.put(SubscriptionGroup(group_name="G_fresh"))
    config.consumer_offsets.commit("G_fresh", "Fresh", 2, 7)
    config.delay_offsets.set(18, 5)


def test_a_change_leaves_the_rest_of_rocketmqs_files_as_it_was(golden_config: Path) -> None:
    before = {name: read(golden_config, name) for name in NAMES}
    config = open_config(golden_config)
    change_all(config)
    config.persist()
    after = {name: read(golden_config, name) for name in NAMES}

    version = before["topics.json"]["dataVersion"]
    assert after["topics.json"].pop("dataVersion") == {
        "counter": version["counter"] + 1,
        "stateVersion": 0,
        "timestamp": NOW,
    }
    fresh = after["topics.json"]["topicConfigTable"].pop("Fresh")
    like = before["topics.json"]["topicConfigTable"]["TopicOne"]
    assert fresh == {**like, "topicName": "Fresh", "readQueueNums": 3, "writeQueueNums": 3}
    assert list(fresh) == list(like), "in fastjson's order"
    group = after["subscriptionGroup.json"]["subscriptionGroupTable"].pop("G_fresh")
    other = before["subscriptionGroup.json"]["subscriptionGroupTable"]["G_all"]
    assert group == {**other, "groupName": "G_fresh"}
    assert after["consumerOffset.json"]["offsetTable"].pop("Fresh@G_fresh") == {2: 7}
    assert after["consumerOffset.json"]["groupTopicMap"].pop("G_fresh") == ["Fresh"]
    assert after["delayOffset.json"]["offsetTable"].pop(18) == 5
    for tables in (before, after):
        tables["topics.json"].pop("dataVersion", None)
        tables["subscriptionGroup.json"].pop("dataVersion")
        for found in (tables["consumerOffset.json"]["groupTopicMap"],):
            found.update({name: sorted(topics) for name, topics in found.items()})
    assert after == before


def test_files_are_written_as_fastjson_writes_them(golden_config: Path) -> None:
    config = open_config(golden_config)
    config.delay_offsets.set(5, 4)
    config.persist()
    text = (golden_config / "config" / "delayOffset.json").read_text()
    assert text == (
        '{\n\t"dataVersion":{\n\t\t"counter":10,\n\t\t"stateVersion":0,\n\t\t"timestamp":'
        '1795206849911\n\t},\n\t"offsetTable":{\n\t\t1:40,\n\t\t2:21,\n\t\t5:4\n\t}\n}'
    )


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq49-clean"])
def test_unknown_members_of_files_are_kept(tmp_path: Path, name: str) -> None:
    shutil.copytree(store(name).path / "config", tmp_path / "config")
    path = tmp_path / "config" / "topics.json"
    value: Any = fastjson.loads(path.read_bytes())
    value["futureTable"] = {"a": [1, None]}
    value["topicConfigTable"]["TopicA"]["futureField"] = {1: "x"}
    path.write_text(fastjson.dumps(value))
    others = {
        file.name: file.read_bytes()
        for file in (tmp_path / "config").iterdir()
        if file.name.removesuffix(".bak") not in NAMES
    }
    config = open_config(tmp_path)
    change_all(config)
    config.persist()
    after = read(tmp_path, "topics.json")
    assert after["futureTable"] == {"a": [1, None]}
    assert after["topicConfigTable"]["TopicA"]["futureField"] == {1: "x"}
    assert others == {name: (tmp_path / "config" / name).read_bytes() for name in others}


def test_unknown_members_stay_with_every_write_and_go_with_their_topic(tmp_path: Path) -> None:
    topics = {name: {"topicName": name, "futureField": name} for name in ("A", "B", "C")}
    path = tmp_path / "config" / "topics.json"
    path.parent.mkdir()
    path.write_text(fastjson.dumps({"topicConfigTable": topics}))
    table = open_config(tmp_path).topics
    for step in (
        lambda: table.put(Topic(topic_name="A", read_queue_nums=1)),
        lambda: table.put(Topic(topic_name="A", read_queue_nums=2)),
        lambda: table.remove("C"),
        lambda: table.put(Topic(topic_name="C")),
    ):
        step()
        write = table.write()
        assert write is not None
        write.complete()
    after = read(tmp_path, "topics.json")["topicConfigTable"]
    assert {name: entry.get("futureField") for name, entry in after.items()} == {
        "A": "A",
        "B": "B",
        "C": None,
    }
    assert after["A"]["readQueueNums"] == 2


def test_nothing_is_written_without_a_change(golden_config: Path) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in (golden_config / "config").iterdir()}
    config = open_config(golden_config)
    config.topics.put(config.topics.get("TopicA") or Topic())
    config.consumer_offsets.commit("G_part", "TopicA", 0, 163)
    config.delay_offsets.set(1, 40)
    assert not config.topics.remove("no such topic")
    config.persist()
    after = {file.name: file.stat().st_mtime_ns for file in (golden_config / "config").iterdir()}
    assert after == before


def test_what_a_group_may_not_do(tmp_path: Path) -> None:
    config = open_config(tmp_path)
    config.groups.forbid("G", "T", PERM_READ)
    config.groups.forbid("G", "T", PERM_READ)
    assert config.groups.version.counter == 1
    config.persist()
    again = open_config(tmp_path).groups
    assert (again.forbidden("G", "T"), again.forbidden("G", "U")) == (PERM_READ, 0)
    again.forbid("G", "T", 0)
    assert again.forbidden("G", "T") == 0


def test_each_table_is_written_in_its_interval(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    config = open_config(tmp_path, clock)
    services = Services(clock, config.services())

    def written_after(milliseconds: int) -> set[str]:
        clock.forward(milliseconds)
        while (job := services.due()) is not None:
            job.run()
            job.done()
        folder = tmp_path / "config"
        return {path.name for path in folder.iterdir()} if folder.exists() else set()

    assert written_after(100) == set()
    change_all(config)
    assert written_after(100) == {"topics.json", "subscriptionGroup.json"}
    assert written_after(4_799) == {"topics.json", "subscriptionGroup.json"}
    assert "consumerOffset.json" in written_after(1)
    assert "delayOffset.json" not in written_after(4_999)
    assert "delayOffset.json" in written_after(1)


def test_a_change_while_the_old_one_is_being_written_is_not_lost(tmp_path: Path) -> None:
    config = open_config(tmp_path)
    config.consumer_offsets.commit("G", "T", 0, 1)
    write = config.consumer_offsets.write()
    assert write is not None
    config.consumer_offsets.commit("G", "T", 0, 2)
    write.run()
    write.done()
    assert read(tmp_path, "consumerOffset.json")["offsetTable"] == {"T@G": {0: 1}}
    config.persist()
    assert read(tmp_path, "consumerOffset.json")["offsetTable"] == {"T@G": {0: 2}}
    assert config.consumer_offsets.write() is None


def test_versions_count_as_rocketmq_counts(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    config = open_config(tmp_path, clock)
    assert config.topics.version.counter == 0
    clock.forward(5)
    config.topics.ensure("T", 4)
    assert config.topics.ensure("T", 9).read_queue_nums == 4
    assert (config.topics.version.counter, config.topics.version.timestamp) == (1, NOW + 5)
    config.topics.remove("T")
    assert config.topics.version.counter == 2
    for number in range(COMMITS_A_VERSION):
        assert config.consumer_offsets.version.counter == 0
        config.consumer_offsets.commit("G", "T", 0, number)
    assert config.consumer_offsets.version.counter == 1
    for number in range(1, CHANGES_A_VERSION + 1):
        assert config.delay_offsets.version.counter == 0
        config.delay_offsets.set(1, number)
    assert config.delay_offsets.version.counter == 1
    config.persist()
    again = open_config(tmp_path)
    assert again.topics.version == config.topics.version
    assert again.delay_offsets.version == config.delay_offsets.version


@pytest.mark.parametrize("damage", [b"", b"{", b"\0" * 64, b'{"topicConfigTable":7}'])
def test_a_damaged_file_is_read_from_its_backup_which_stays(
    golden_config: Path, damage: bytes
) -> None:
    whole = (golden_config / "config" / "topics.json").read_bytes()
    (golden_config / "config" / "topics.json.bak").write_bytes(whole)
    (golden_config / "config" / "topics.json").write_bytes(damage)
    config = open_config(golden_config)
    assert "TopicA" in config.topics
    config.topics.ensure("Fresh", 1)
    config.persist()
    assert (golden_config / "config" / "topics.json.bak").read_bytes() == whole
    assert "Fresh" in open_config(golden_config).topics
    config.topics.ensure("Fresher", 1)
    config.persist()
    assert "Fresh" in read(golden_config, "topics.json.bak")["topicConfigTable"]


def test_a_shorter_table_leaves_no_rest_of_the_longer_one(tmp_path: Path) -> None:
    """apache/rocketmq#9328: the file was written over, and not cut."""
    config = open_config(tmp_path)
    for number in range(100):
        config.topics.ensure(f"Topic{number}", 1)
    config.persist()
    longer = (tmp_path / "config" / "topics.json").read_text()
    for number in range(99):
        config.topics.remove(f"Topic{number}")
    config.persist()
    text = (tmp_path / "config" / "topics.json").read_text()
    assert len(text) < len(longer)
    assert text == fastjson.dumps(fastjson.loads(text.encode()))
    assert (tmp_path / "config" / "topics.json.bak").read_text() == longer


def test_two_damaged_files_are_an_error_of_one_line(golden_config: Path) -> None:
    for name in ("topics.json", "topics.json.bak"):
        (golden_config / "config" / name).write_bytes(b"{:")
    with pytest.raises(StoreError, match=r"config/topics\.json: .*no valid backup") as caught:
        open_config(golden_config)
    assert "\n" not in str(caught.value)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    directory, clock = FullDisk(tmp_path), ManualClock(NOW)
    config = ConfigStore.load(directory, current(StoreSettings()), clock)
    config.topics.ensure("Old", 1)
    config.persist()
    services = Services(clock, config.services())
    directory.is_full = True
    change_all(config)
    with pytest.raises(DiskError):
        config.persist()
    clock.forward(60_000)
    tried = 0
    while (job := services.due()) is not None:
        job.run()
        job.done()
        tried += 1
    assert tried == len(NAMES), "once each"
    assert list(open_config(tmp_path).topics) == ["Old"]
    directory.is_full = False
    config.persist()
    again = open_config(tmp_path)
    assert set(again.topics) == {"Old", "Fresh"}
    assert again.consumer_offsets.query("G_fresh", "Fresh", 2) == 7


def test_consumer_offsets(tmp_path: Path) -> None:
    table = open_config(tmp_path).consumer_offsets
    assert table.query("G", "T", 0) is None
    table.commit("G", "T", 0, 10)
    table.commit("G", "T", 1, 11)
    table.commit("G", "T2", 0, 12)
    table.commit("H", "T", 0, 13)
    table.commit("G", "T", 0, 9)
    assert table.query("G", "T", 0) == 9
    assert table.query_topic("G", "T") == {0: 9, 1: 11}
    assert (table.topics_of("G"), table.groups_of("T")) == ({"T", "T2"}, {"G", "H"})
    assert table.query_pull("G", "T", 0) == 9
    table.commit_pull("G", "T", 0, 20)
    assert (table.query_pull("G", "T", 0), table.query("G", "T", 0)) == (20, 9)
    assert len(table) == 5
    for group in table.groups_of("T"):
        table.remove(group, "T")
    assert len(table) == 1
    assert (table.topics_of("G"), table.topics_of("H"), table.groups_of("T")) == (
        {"T2"},
        set(),
        set(),
    )
    table.remove("G", "T2")
    assert table.query("G", "T2", 0) is None
    assert not len(table)


def test_what_changes_while_offsets_are_written_is_written_next(tmp_path: Path) -> None:
    table = open_config(tmp_path).consumer_offsets
    table.commit("G", "T", 0, 1)
    table.commit("G", "T2", 0, 1)
    first = table.write()
    assert first is not None
    table.commit("G", "T", 0, 2)
    table.commit("G", "T", 1, 2)
    table.remove("G", "T2")
    first.complete()
    found = open_config(tmp_path).consumer_offsets
    assert (found.query_topic("G", "T"), found.query("G", "T2", 0)) == ({0: 1}, 1)
    second = table.write()
    assert second is not None
    second.complete()
    found = open_config(tmp_path).consumer_offsets
    assert (found.query_topic("G", "T"), found.query("G", "T2", 0)) == ({0: 2, 1: 2}, None)
    assert table.write() is None


def test_a_reset_holds_until_it_is_taken(tmp_path: Path) -> None:
    table = open_config(tmp_path).consumer_offsets
    table.commit("G", "T", 0, 10)
    table.reset("G", "T", 0, 3)
    table.commit("G", "T", 0, 11)
    assert table.query("G", "T", 0) == 3
    assert table.has_reset("G", "T", 0)
    assert table.take_reset("G", "T", 0) == 3
    assert not table.has_reset("G", "T", 0)
    assert table.query("G", "T", 0) == 11
    assert table.take_reset("G", "T", 0) is None


KEYS = st.tuples(
    st.sampled_from("GHK"), st.sampled_from(["T", "%RETRY%G", "T_2"]), st.integers(0, 3)
)


@given(commits=st.lists(st.tuples(KEYS, st.integers(0, 1 << 62)), max_size=40))
def test_offsets_survive_a_restart(
    tmp_path_factory: pytest.TempPathFactory, commits: list[tuple[tuple[str, str, int], int]]
) -> None:
    path = tmp_path_factory.mktemp("store")
    model: dict[tuple[str, str, int], int] = {}
    config = open_config(path)
    for number, (key, offset) in enumerate(commits):
        config.consumer_offsets.commit(*key, offset)
        model[key] = offset
        if number % 7 == 0:
            config.persist()
            config = open_config(path)
    config.persist()
    again = open_config(path).consumer_offsets
    assert {key: again.query(*key) for key in model} == model
