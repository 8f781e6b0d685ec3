"""Offsets of a group at brokers that answer out of order, and in a file that cannot be read."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import cast

import pytest

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.local_offsets import LocalOffsets
from mqlake.client.consumer.offsets import BrokerOffsets
from mqlake.errors import DiskError
from mqlake.protocol.bodies.message_queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


class Broker:
    """Stores an offset; pulls that it has still to serve commit theirs after each commit."""

    def __init__(self, late: list[int]) -> None:
        self.late, self.stored, self.commits = late, 0, 0

    async def commit_offset(self, queue: MessageQueue, offset: int) -> None:
        assert queue == QUEUE
        self.commits += 1
        self.stored = self.late.pop(0) if self.late else offset

    async def offset_of_group(self, queue: MessageQueue) -> int | None:
        assert queue == QUEUE
        return self.stored


def settled(broker: Broker, *, leaves: bool = True) -> int:
    offsets = BrokerOffsets(cast("BrokerCalls", broker))
    asyncio.run(offsets.settle(QUEUE, 10, leaves=leaves))
    return broker.stored


def test_a_late_pull_does_not_take_an_offset_back() -> None:
    broker = Broker([])
    assert (settled(broker), broker.commits) == (10, 1)
    broker = Broker([4])
    assert (settled(broker), broker.commits) == (10, 2)


def test_another_members_commit_ends_a_retried_commit(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker([4] * 100)
    assert (settled(broker), broker.commits) == (4, 3)
    assert "the broker keeps offset 4 instead of 10" in caplog.text


@pytest.mark.parametrize(("leaves", "commits"), [(True, 1), (False, 2)])
def test_the_next_member_of_a_queue_may_have_committed_a_later_offset(
    caplog: pytest.LogCaptureFixture, leaves: bool, commits: int
) -> None:
    broker = Broker([15])
    settled(broker, leaves=leaves)
    assert broker.commits == commits
    assert not caplog.records


@pytest.mark.parametrize("name", ["offsets.json", "offsets.json.bak"])
def test_local_offsets_survive_a_read_error_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    other, read_bytes = MessageQueue("orders", "broker-a", 1), Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == name:
            raise OSError(errno.EMFILE, "Too many open files")
        return read_bytes(path)

    async def run() -> None:
        before = LocalOffsets("c", "g", tmp_path)
        await before.commit(QUEUE, 100)
        await before.commit(other, 200)
        await before.commit(other, 201)
        (folder,) = (tmp_path / ".rocketmq_offsets/c").iterdir()
        if name.endswith(".bak"):
            (folder / "offsets.json").unlink()
        files = {path.name: path.read_bytes() for path in folder.iterdir()}

        offsets = LocalOffsets("c", "g", tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", refused)
            with pytest.raises(DiskError, match=f"{name}: Too many open files"):
                await offsets.read(QUEUE)
            with pytest.raises(DiskError):
                await offsets.commit(QUEUE, 5000)
            await offsets.note(QUEUE, 5000)  # A failure is logged only.
            assert "offset 5000 of" in caplog.text
            offsets.flush()
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == files

        assert await offsets.read(QUEUE) == 100
        await offsets.note(QUEUE, 5000)
        offsets.flush()
        again = LocalOffsets("c", "g", tmp_path)
        assert await again.read(QUEUE) == 5000
        assert await again.read(other) == (200 if name.endswith(".bak") else 201)

    asyncio.run(run())


@pytest.mark.parametrize("reason", [errno.EIO, errno.EACCES, errno.EISDIR, None])
@pytest.mark.parametrize("has_backup", [True, False])
def test_local_offsets_that_stay_unreadable_are_those_of_the_backup(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reason: int | None,
    has_backup: bool,
) -> None:
    read_bytes = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "offsets.json":
            if reason is None:
                return b"\x00" * 100
            raise OSError(reason, "refused")
        return read_bytes(path)

    async def run() -> None:
        before = LocalOffsets("c", "g", tmp_path)
        await before.commit(QUEUE, 100)
        if has_backup:
            await before.commit(QUEUE, 101)
        monkeypatch.setattr(Path, "read_bytes", refused)
        offsets = LocalOffsets("c", "g", tmp_path)
        if has_backup:
            assert await offsets.read(QUEUE) == 100
        elif reason is None:
            assert await offsets.read(QUEUE) is None
        else:
            with pytest.raises(DiskError, match="refused"):
                await offsets.read(QUEUE)
        assert "offsets.json" in caplog.text or not has_backup

    asyncio.run(run())


def test_local_offsets_that_cannot_be_read_once_are_not_those_of_the_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, read_bytes, reasons = MessageQueue("orders", "broker-a", 1), Path.read_bytes, [errno.EIO]

    def refused_once(path: Path) -> bytes:
        if path.name == "offsets.json" and reasons:
            raise OSError(reasons.pop(), "refused")
        return read_bytes(path)

    async def run() -> None:
        before = LocalOffsets("c", "g", tmp_path)
        await before.commit(QUEUE, 100)
        await before.commit(other, 200)  # The backup lacks it.
        monkeypatch.setattr(Path, "read_bytes", refused_once)
        offsets = LocalOffsets("c", "g", tmp_path)
        assert await offsets.read(other) == 200
        assert not reasons

    asyncio.run(run())
