"""The disk refuses a read while a group should receive a reset of its offset."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from mqlake.errors import DiskError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.store.queues.owned_queues import OwnedQueues
from tests import simulated
from tests.broker.pull.pulls import GROUP, fill, pull
from tests.broker.running import running


def test_a_reset_is_kept_until_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OwnedQueues.min_offset

    def fail(queues: OwnedQueues, topic: str, queue_id: int) -> int:
        if topic != "Orders":
            return real(queues, topic, queue_id)  # The broker reads its own topics meanwhile.
        raise DiskError(f"{topic}/{queue_id}: Too many open files", errno.EMFILE)

    async def main() -> None:
        async with running(tmp_path) as broker:
            await fill(broker, 50)
            offsets = broker.state.store.config.consumer_offsets
            offsets.reset(GROUP, "Orders", 0, 17)
            flags = HAS_SUBSCRIPTION | COMMITS_OFFSET
            with monkeypatch.context() as patched:
                patched.setattr(OwnedQueues, "min_offset", fail)
                failed = await pull(broker, 40, sys_flag=flags, commit_offset=40)
            assert failed.code == ResponseCode.SYSTEM_ERROR
            assert "Too many open files" in failed.remark
            assert offsets.has_reset(GROUP, "Orders", 0)
            found = await pull(broker, 40, sys_flag=flags, commit_offset=40)
            assert (found.code, found.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
            assert found.offsets.next_begin_offset == 17
            assert offsets.query(GROUP, "Orders", 0) == 17
            assert not offsets.has_reset(GROUP, "Orders", 0)

    simulated.run(main())
