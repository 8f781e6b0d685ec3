"""The HTTP endpoint, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import pytest

from mqlake.errors import MqlakeError
from mqlake.metrics import endpoint
from mqlake.metrics.endpoint import LONGEST_REQUEST, MOST_OF_ADDRESS, Endpoint, HttpResponse

HOST = "127.0.0.1"


async def page() -> HttpResponse:
    return HttpResponse(b"content")


async def broken() -> HttpResponse:
    raise ValueError("secret")


def run(check: Callable[[int], Awaitable[None]]) -> None:
    async def main() -> None:
        served = Endpoint({"/page": page, "/broken": broken})
        port = await served.start(HOST, 0)
        try:
            await check(port)
        finally:
            await served.stop()

    asyncio.run(main())


async def ask(port: int, data: bytes) -> bytes:
    """Return all that the endpoint answers until it closes the connection."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(data)
        return await rest(reader)
    finally:
        writer.close()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the connection is closed; nothing if it is reset."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def test_a_page_is_answered_whole_and_the_connection_closed() -> None:
    async def check(port: int) -> None:
        head, _, body = (await ask(port, get("/page?a=b"))).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Content-Length: 7" in head
        assert body == b"content"

    run(check)


def test_head_has_the_length_and_no_body() -> None:
    async def check(port: int) -> None:
        answer = await ask(port, get("/page", "HEAD"))
        assert b"Content-Length: 7" in answer
        assert answer.endswith(b"\r\n\r\n")

    run(check)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/other"), HTTPStatus.NOT_FOUND),
        (get("/page", "POST"), HTTPStatus.METHOD_NOT_ALLOWED),
        (get("/broken"), HTTPStatus.INTERNAL_SERVER_ERROR),
        (b"\r\n\r\n", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"GET\r\n\r\n", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"GET \xff\x00 HTTP/1.1\r\n\r\n", HTTPStatus.NOT_FOUND),
    ],
)
def test_other_requests_get_an_error_that_tells_no_secret(
    request_: bytes, status: HTTPStatus
) -> None:
    async def check(port: int) -> None:
        answer = await ask(port, request_)
        assert answer.startswith(f"HTTP/1.1 {status.value} ".encode())
        assert b"secret" not in answer

    run(check)


def test_a_request_that_is_too_long_is_cut_off() -> None:
    async def check(port: int) -> None:
        assert await ask(port, b"GET /" + b"a" * 4 * LONGEST_REQUEST) == b""
        assert await ask(port, get("/page")) != b""

    run(check)


def test_silent_clients_of_an_address_are_limited_and_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def check(port: int) -> None:
        silent = [await asyncio.open_connection(HOST, port) for _ in range(2 * MOST_OF_ADDRESS)]
        for reader, writer in silent:  # Those beyond the limit at once, the others later.
            assert await rest(reader) == b""
            writer.close()
        assert await ask(port, get("/page")) != b""

    monkeypatch.setattr(endpoint, "PATIENCE", 0.2)
    run(check)


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    async def check(port: int) -> None:
        with pytest.raises(MqlakeError, match=f"cannot listen on {HOST}:{port} for metrics: "):
            await Endpoint({}).start(HOST, port)

    run(check)
