from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_store import RocketMQ

pytest.register_assert_rewrite("tests.peer.answers")


@pytest.fixture(scope="session")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketMQ]:
    """The real store; one JVM for all tests of a process."""
    try:
        peer = RocketMQ(tmp_path_factory.mktemp("java"))
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    yield peer
    peer.close()
