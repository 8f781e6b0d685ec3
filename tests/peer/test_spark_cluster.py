"""A Spark cluster, a broker of Java and one of mqlake; `python -m tests.peer.spark_cluster`.

This takes a minute: it starts ten JVMs, two of them drivers with Delta Lake. `make cluster-test`
runs it. `make nightly` has three workers, and kills each of the four 25 times. `make test` has the
parts: it kills a worker of a cluster in tests/spark/test_cluster.py and drivers in
tests/spark/follow, and reads brokers in tests/query/live and tests/peer/test_spark_live.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peer.java_build import JavaMissingError
from tests.peer.spark_cluster.run import run

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.nightly]


@pytest.mark.timeout(1800)
def test_every_message_once_while_a_worker_and_brokers_are_killed(tmp_path: Path) -> None:
    try:
        outcome = run(tmp_path, ("worker", "java"), ("ours",), seed=1, workers=1)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    assert outcome.violations == 0, outcome
    assert outcome.kills == {"worker": 1, "java": 1, "ours": 1}
    assert outcome.stored >= outcome.acknowledged > 0
