"""Java and Python members in one group, who come and go; `python -m tests.peer.mixed_groups`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peer.java_build import JavaMissingError
from tests.peer.mixed_groups.brokers import JAVA, started
from tests.peer.mixed_groups.run import LEAST_SENT, run
from tests.peer.rocketmq_client import NEWEST, Clients

pytestmark = [pytest.mark.peer]

MODES = ("concurrent", "ordered", "broadcasting")
SECONDS = 12.0
REBALANCE = 20_000


def test_members_of_both_kinds_share_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    try:
        clients = Clients(tmp_path, NEWEST, REBALANCE)
        with started(JAVA, tmp_path) as addresses:
            outcomes = run(clients, *addresses, SECONDS, 1, MODES)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    clients.close()
    assert [outcome.violations for outcome in outcomes] == [[], [], []]
    assert [outcome.repeated["unexplained"] for outcome in outcomes] == [0, 0, 0]
    for outcome in outcomes:
        assert outcome.sent >= LEAST_SENT
        assert outcome.changes.total() > 2
        assert all(outcome.deliveries[side] for side in ("java", "python"))
