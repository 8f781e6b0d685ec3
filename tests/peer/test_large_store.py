"""`python -m tests.peer.large_store` reads what Java wrote, and finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.jobs.local import LocalEngine
from tests.peer.java_build import JavaMissingError
from tests.peer.large_store.run import (
    expected,
    faults,
    faults_of_rebuild,
    faults_of_verify,
    write,
)
from tests.spark.shared_session import SHARED

pytestmark = [
    pytest.mark.peer,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
]

MESSAGES = 3001


def test_a_store_of_java_is_read_and_rebuilt(tmp_path: Path) -> None:
    try:
        write(tmp_path, MESSAGES)
    except JavaMissingError as reason:
        pytest.skip(f"without RocketMQ's store: {reason}")
    session, said = SHARED.open(), list[str]()
    assert not list(faults(session.spark, session.engine, tmp_path, MESSAGES, said.append))
    assert "equal byte for byte" in said[-1]

    store, rebuilt = tmp_path / "store", tmp_path / "rebuilt"
    assert list(faults_of_verify(store, LocalEngine(1), MESSAGES + 1))
    with (store / "consumequeue" / "topic-0" / "0" / f"{0:020d}").open("r+b") as file:
        file.write(b"\1")
    assert list(faults_of_verify(store, LocalEngine(1), MESSAGES))
    assert list(faults_of_rebuild(store, rebuilt, said.append))


def test_sums_differ_if_a_message_is_missing_or_elsewhere() -> None:
    whole = expected(MESSAGES)
    assert sum(each["count"] for each in whole.values()) == MESSAGES
    assert sum(each["numbers"] for each in whole.values()) == sum(range(MESSAGES))
    changed = [topic for topic in whole if expected(MESSAGES - 1)[topic] != whole[topic]]
    assert changed == ["topic-0"]
