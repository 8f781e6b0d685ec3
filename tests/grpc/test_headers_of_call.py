"""The headers of a call are told from its metadata."""

from __future__ import annotations

import pytest

from mqlake.grpc.headers_of_call import CallHeaders, CallRefusedError, timeout_of
from mqlake.grpc.http2.headers import MALFORMED
from tests.grpc.raw_client import CALL


def test_metadata_is_what_is_left() -> None:
    fields = {**CALL, "x-mq-client-id": "c"}
    found = CallHeaders(fields)
    assert (found.path, found.authority) == (CALL[":path"], "test:1")
    assert fields == {"te": "trailers", "content-type": "application/grpc", "x-mq-client-id": "c"}


def test_the_host_names_the_server_if_nothing_else_does() -> None:
    fields = {**CALL, "host": "other:2"}
    del fields[":authority"]
    assert CallHeaders(fields).authority == "other:2"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({":method": "GET"}, 405),
        ({MALFORMED: "Upper"}, 400),
        ({"content-type": "application/json"}, 415),
        ({"content-type": "application/grpcx"}, 415),
    ],
)
def test_what_is_no_call_is_refused(changed: dict[str, str], status: int) -> None:
    with pytest.raises(CallRefusedError) as caught:
        CallHeaders({**CALL, **changed})
    assert caught.value.status == status


@pytest.mark.parametrize("kind", ["application/grpc", "application/grpc+proto"])
def test_types_of_content_that_are_grpc(kind: str) -> None:
    CallHeaders({**CALL, "content-type": kind})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2H", 7200), ("3M", 180), ("30S", 30), ("50m", 0.05), ("5u", 5e-6), ("7n", 7e-9)],
)
def test_timeouts_have_units(text: str, seconds: float) -> None:
    assert timeout_of({"grpc-timeout": text}) == pytest.approx(seconds)


def test_a_call_may_have_no_timeout() -> None:
    assert timeout_of({}) is None


@pytest.mark.parametrize("text", ["", "S", "1", "-1S", "1.5S", "123456789S", "1s"])
def test_what_is_no_timeout_is_refused(text: str) -> None:
    with pytest.raises(CallRefusedError, match="grpc-timeout is"):
        timeout_of({"grpc-timeout": text})
