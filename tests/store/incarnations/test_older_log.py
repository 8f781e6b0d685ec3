"""An older log under newer tables: nothing that is put next is dead, or skipped by a group."""

from __future__ import annotations

import logging
import shutil
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mqlake.cli.views.inspect import view
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.settings import BrokerRole, StoreSettings
from tests.crash.clock import ManualClock
from tests.store.small_stores import SMALL
from tests.store.test_config_store import open_config

REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"


def open_store(path: Path, role: BrokerRole = BrokerRole.ASYNC_MASTER) -> OwnedStore:
    settings = StoreSettings(**SMALL, broker_role=role)
    return OwnedStore.open(LocalOwnedDirectory.make(path), settings, ManualClock())


def fill(store: OwnedStore, topic: str, count: int) -> None:
    for number in range(count):
        assert store.puts.put(Message(topic, b"%d" % number)).is_ok
    store.tick()


def restored(path: Path) -> None:
    """Leave a store whose log, queues and index are older than its `config/`."""
    store = open_store(path / "store")
    for topic in ("Kept", "Deleted", REVIVE):
        fill(store, topic, 4)
    store.close()
    shutil.copytree(path / "store", path / "backup")
    store = open_store(path / "store")
    for topic in ("Kept", "Deleted", REVIVE):
        fill(store, topic, 40)
    offsets = store.config.consumer_offsets
    offsets.commit("G", "Kept", 0, 44)
    offsets.commit_pull("G", "Kept", 0, 44)
    offsets.commit("H", "Kept", 0, 3)
    offsets.commit("CID_RMQ_SYS_REVIVE_GROUP", REVIVE, 0, 30)
    store.config.delay_offsets.set(3, 7)
    store.removal.remove("Deleted")
    store.close()
    shutil.rmtree(path / "backup" / "config")
    shutil.move(path / "store" / "config", path / "backup" / "config")


def test_messages_after_a_restored_log_live(tmp_path: Path) -> None:
    restored(tmp_path)
    store = open_store(tmp_path / "backup")
    assert store.reads.queues("Deleted") == []
    for _ in range(2):
        fill(store, "Deleted", 1)
        store.close()
        store = open_store(tmp_path / "backup")
    found = store.reads.get("Deleted", 0, 0).records
    assert [record.queue_offset for record in found] == [0, 1]
    store.close()


def test_inspect_shows_which_messages_are_deleted(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, "Deleted", 3)
    end = store.log.end
    store.removal.remove("Deleted")
    store.close()
    with StoreReader.open(tmp_path) as reader:
        report = reader.inspect()
    assert report.config.deleted_before == {"Deleted": end}
    assert report.topics == []
    shown = StringIO()
    console = Console(file=shown, width=120)
    for part in view(report):
        console.print(part)
    assert f"Deleted before physical offset {end:,}" in shown.getvalue()


def test_no_group_skips_what_is_put_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    restored(tmp_path)
    with caplog.at_level(logging.WARNING):
        store = open_store(tmp_path / "backup")
    offsets = store.config.consumer_offsets
    assert offsets.query("G", "Kept", 0) == offsets.query_pull("G", "Kept", 0) == 4
    assert offsets.query("H", "Kept", 0) == 3
    assert offsets.query("CID_RMQ_SYS_REVIVE_GROUP", REVIVE, 0) == 4
    assert store.config.delay_offsets.get(3) == store.offsets.next(SCHEDULE_TOPIC, 2) == 0
    assert "4 offsets of consumer groups and delay levels were past the end" in caplog.text
    store.close()


def test_a_slave_keeps_its_masters_offsets_until_it_is_promoted(tmp_path: Path) -> None:
    restored(tmp_path)
    store = open_store(tmp_path / "backup", BrokerRole.SLAVE)
    assert store.config.consumer_offsets.query("G", "Kept", 0) == 44
    for job in store.role.leading():
        if job is not None:
            job.run()
            job.done()
    assert store.config.consumer_offsets.query("G", "Kept", 0) == 4
    store.close()


@given(
    offsets=st.dictionaries(
        st.tuples(st.sampled_from("GH"), st.sampled_from("ST"), st.integers(0, 2)),
        st.integers(-1, 9),
    ),
    ends=st.dictionaries(st.tuples(st.sampled_from("ST"), st.integers(0, 2)), st.integers(0, 9)),
)
def test_offsets_move_to_the_ends_of_queues(
    offsets: dict[tuple[str, str, int], int], ends: dict[tuple[str, int], int]
) -> None:
    table = open_config(Path("unused")).consumer_offsets
    for (group, topic, queue_id), offset in offsets.items():
        table.commit(group, topic, queue_id, offset)
    steps, count = table.clamp(lambda *queue: ends.get(queue)), None
    while count is None:
        try:
            next(steps)
        except StopIteration as stop:
            count = stop.value
    expected = {key: min(offset, ends.get(key[1:], offset)) for key, offset in offsets.items()}
    assert {key: table.query(*key) for key in offsets} == expected
    assert count == sum(expected[key] != offset for key, offset in offsets.items())
