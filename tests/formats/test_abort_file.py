"""The abort file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.formats import abort_file
from tests.formats.golden_log import golden


def test_a_killed_broker_left_its_process_id() -> None:
    data = (golden("rmq5-killed").path / "abort").read_bytes()
    pid = abort_file.decode(data)
    assert pid is not None
    assert pid > 0
    assert abort_file.encode(pid) == data


@given(st.integers(0, 10**19 - 1) | st.none())
def test_round_trip(pid: int | None) -> None:
    assert abort_file.decode(abort_file.encode(pid)) == pid


@pytest.mark.parametrize("data", [b"", b"-1", b"1 2", b"x", b"1" * 20, b"1" * 100_000, b"\xff"])
def test_no_process_id(data: bytes) -> None:
    assert abort_file.decode(data) is None


def test_a_line_end_does_no_harm() -> None:
    assert abort_file.decode(b"42\n") == 42
