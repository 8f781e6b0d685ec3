"""The short version of the abuse of a night."""

from __future__ import annotations

import pytest

from mqlake.grpc.connection import GrpcConnection
from mqlake.grpc.http2.sending import StreamOutput
from tests.grpc.abuse.kinds import KINDS
from tests.grpc.abuse.run import look, run


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_that_a_client_sends_does_harm(seed: int) -> None:
    outcome = run(3_000, seed * 1_000_000)
    assert outcome.violations == []
    assert set(outcome.counts) == set(KINDS)
    assert {"PROTOCOL_ERROR", "COMPRESSION_ERROR"} <= set(outcome.ends)


def test_memory_that_is_left_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: GrpcConnection, exc: Exception | None) -> None:
        pass

    monkeypatch.setattr(GrpcConnection, "connection_lost", lost)
    assert any("are left" in each for each in run(20, 1).violations)


def test_an_error_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: StreamOutput, size: int) -> None:
        raise KeyError(size)

    monkeypatch.setattr(StreamOutput, "widen", fail)
    assert any("an internal error" in each for each in run(300, 1).violations)


def test_a_wrong_frame_is_noticed() -> None:
    assert look(b"\0\0\0\0\0\0\0\0\0") == ("without a farewell", "a frame of type 0 on stream 0")
    assert look(b"\0\0\1")[1] == "half a frame"
