from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.peer.java_build import JavaMissingError
from tests.peer.java_programs import NEWEST_STORE
from tests.peer.rocketmq_store import RocketMQ

pytest.register_assert_rewrite("tests.peer.answers")


RELEASES = [NEWEST_STORE, pytest.param("5.5.0", marks=pytest.mark.nightly)]


@pytest.fixture(scope="session", params=RELEASES)
def rocketmq(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RocketMQ]:
    """The real store; one JVM for all tests of a process."""
    try:
        peer = RocketMQ(tmp_path_factory.mktemp("java"), request.param)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    yield peer
    peer.close()
