"""The record CRC is RocketMQ's: the real store checks mqlake's, and mqlake the real store's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.store.blocking import BlockingMessageStore
from tests.golden import ROOT
from tests.peer import answers
from tests.peer.rocketmq_store import RocketMQ
from tests.peer.workload import DELAY_LEVELS, Answer, expected, puts
from tests.store.record_crcs import check_crcs

pytestmark = [pytest.mark.peer]

SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "messageDelayLevel": DELAY_LEVELS,
}
STRICT = {**SETTINGS, "enabledAppendPropCRC": True, "forceVerifyPropCRC": True}
COUNT = 300


def put_and_be_killed(path: Path, seed: int, **settings: object) -> list[Answer]:
    words = [json.dumps(SETTINGS | settings), str(seed), str(COUNT)]
    command = [sys.executable, "-m", "tests.peer.live_writer", path, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return json.loads(done.stdout)


def end_of(found: list[Answer]) -> int:
    return int(found[-1]["messageIds"][0][-16:], 16) + found[-1]["size"]


def test_rocketmq_recovers_all_that_mqlake_wrote_by_the_record_crc(
    tmp_path: Path, rocketmq: RocketMQ
) -> None:
    path = tmp_path / "store"
    found = put_and_be_killed(path, 1)
    messages = expected(puts(1, COUNT), found)
    assert check_crcs(path) == len(messages)

    rocketmq.open(path, STRICT)
    assert rocketmq.bounds()["maxOffset"] == end_of(found)
    answers.check(rocketmq, messages)
    described = puts(2, COUNT)
    found = rocketmq.append(described)
    messages += expected(described, found)
    rocketmq.kill()

    assert check_crcs(path) == len(messages)
    with BlockingMessageStore.open(path, SETTINGS) as store:
        assert store.core.log.end == end_of(found)
    found = put_and_be_killed(path, 3)
    messages += expected(puts(3, COUNT), found)
    assert check_crcs(path) == len(messages)


def test_rocketmq_does_check_it(tmp_path: Path, rocketmq: RocketMQ) -> None:
    """Records without it are cut: so those above were all found to be right."""
    path = tmp_path / "store"
    put_and_be_killed(path, 1, enabledAppendPropCRC=False)
    rocketmq.open(path, STRICT)
    try:
        assert rocketmq.bounds()["maxOffset"] == 0
    finally:
        rocketmq.shut_down()
