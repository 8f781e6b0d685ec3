"""Queue directories in which deleted topics left more than their own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.store.settings import BrokerRole
from tests.store.incarnations.test_older_log import fill, open_store


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("where", ["T", "T/0"])
def test_a_foreign_file_is_kept_and_blocks_no_removal(
    tmp_path: Path, where: str, is_killed: bool
) -> None:
    store = open_store(tmp_path)
    fill(store, "T", 9)
    foreign = tmp_path / "consumequeue" / where / ".nfs0001"
    foreign.write_bytes(b"foreign")
    if is_killed:
        store.removal.end("T")
        store.config.persist()
        store.abandon()
    else:
        store.removal.remove("T")
        store.close()
    store = open_store(tmp_path)
    assert store.reads.queues("T") == []
    assert not store.queues.has_dead
    fill(store, "T", 2)
    assert len(store.reads.get("T", 0, 0).records) == 2
    assert foreign.read_bytes() == b"foreign"
    store.close()


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("new", [1, 3, 9])
@pytest.mark.parametrize("old", [1, 3, 9])
def test_living_entries_after_dead_ones_of_the_same_file_are_kept(
    tmp_path: Path, old: int, new: int, is_killed: bool
) -> None:
    """RocketMQ's slaves leave such queues."""
    store = open_store(tmp_path)
    fill(store, "T", old)
    fill(store, "Other", 1)
    before = store.log.end
    fill(store, "T", new)
    store.close()
    store = open_store(tmp_path, BrokerRole.SLAVE)
    for job in store.removal.steps("T", before):
        if job is not None:
            job.run()
            job.done()
    if is_killed:
        store.abandon()
    else:
        store.close()
    for _ in range(2):
        store = open_store(tmp_path, BrokerRole.SLAVE)
        assert store.reads.queue("T", 0).max_offset == old + new
        found = store.reads.get("T", 0, old, 32).records
        assert [record.queue_offset for record in found] == list(range(old, old + new))
        store.close()
