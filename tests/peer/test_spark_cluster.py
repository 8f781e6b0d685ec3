"""A Spark cluster, a broker of Java and one of mqlake; `python -m tests.peer.spark_cluster`.

This takes a minute: it starts ten JVMs, two of them drivers with Delta Lake. `make nightly` runs
three workers, and kills each of the four 25 times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peer.java_build import JavaMissingError
from tests.peer.spark_cluster.run import run

pytestmark = [pytest.mark.peer, pytest.mark.spark]


@pytest.mark.timeout(1800)
def test_every_message_once_while_a_worker_and_brokers_are_killed(tmp_path: Path) -> None:
    try:
        outcome = run(tmp_path, ("worker", "java"), ("ours",), seed=1, workers=1)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    assert outcome.violations == 0, outcome
    assert outcome.kills == {"worker": 1, "java": 1, "ours": 1}
    assert outcome.stored >= outcome.acknowledged > 0
