"""The application: its pages, its headers, and what it refuses."""

from __future__ import annotations

import asyncio

import pytest
from starlette.routing import Route

from mqlake.console.access.changes import change, unchecked
from mqlake.console.options import ConsoleOptions
from mqlake.errors import MqlakeError
from mqlake.testing.running_broker import RunningBroker
from tests.console.site import site, words


def test_shows_the_brokers_of_a_cluster(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            shown = await visitor.get("/")
            assert shown.status_code == 200
            assert "broker-a" in words(shown)

    asyncio.run(visit())


def test_every_response_has_the_headers(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            for path in ("/cluster", "/nothing", "/static/console.css", "/static/nothing"):
                headers = (await visitor.get(path)).headers
                assert "script-src 'self'" in headers["content-security-policy"]
                assert "unsafe" not in headers["content-security-policy"]
                assert headers["x-frame-options"] == "DENY"

    asyncio.run(visit())


def test_another_host_name_is_refused_without_a_login(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            for host, code in (
                ("evil.example", 421),
                ("evil.example:8280", 421),
                ("127.0.0.1.evil.example", 421),
                ("localhost:8280", 200),
                ("[::1]:8280", 200),
            ):
                assert (await visitor.get("/cluster", host=host)).status_code == code, host

    asyncio.run(visit())


def test_says_when_the_cluster_cannot_be_reached() -> None:
    async def visit() -> None:
        async with site("127.0.0.1:1") as visitor:
            shown = await visitor.get("/cluster")
            assert shown.status_code == 502
            assert "127.0.0.1:1" in words(shown)

    asyncio.run(visit())


def test_other_machines_need_a_login() -> None:
    with pytest.raises(MqlakeError, match="--login"):
        ConsoleOptions(name_servers="", host="0.0.0.0").check()
    ConsoleOptions(name_servers="", host="0.0.0.0", login=True).check()
    with pytest.raises(MqlakeError, match="--viewer has no effect without --login"):
        ConsoleOptions(name_servers="", viewers=frozenset({"bob"})).check()


def test_a_post_without_checks_is_found() -> None:
    async def page(*given: object) -> None:
        return None

    routes = [Route("/open", page, methods=["POST"]), change("/closed", page, "a.b")]  # type: ignore[arg-type]
    assert unchecked(list(routes)) == ["/open"]
