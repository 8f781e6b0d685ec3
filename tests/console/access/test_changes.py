"""The checks of each change: token, origin, read-only, form."""

from __future__ import annotations

import asyncio

from mqlake.testing.running_broker import RunningBroker
from tests.console.site import site, words

FORM = {"topic": "unwanted", "new": "1", "cluster": "DefaultCluster", "read": "1", "write": "1"}


def test_a_change_needs_the_token_of_the_session(running: RunningBroker) -> None:
    async def visit() -> None:
        async with (
            site(running.name_server) as visitor,
            site(running.name_server) as other,
        ):
            for token in ("", "x", await other.csrf(), "é"):
                form = {**FORM, "permission": "6", "csrf": token}
                await visitor.csrf()
                refused = await visitor.client.post("/topics/save", data=form)
                assert refused.status_code == 403, token
            assert "unwanted" not in words(await visitor.get("/topics"))

    asyncio.run(visit())


def test_two_tabs_that_are_opened_at_once_both_work(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            tokens: list[str] = []
            for _ in range(2):
                visitor.client.cookies.clear()  # Neither tab has a cookie when it is opened.
                page = await visitor.get("/topics/new")
                tokens.append(page.text.split('name="csrf" value="')[1].partition('"')[0])
            for number, token in enumerate(tokens):
                form = {**FORM, "topic": f"tab-{number}", "permission": "6", "csrf": token}
                saved = await visitor.client.post("/topics/save", data=form)
                assert f"tab-{number} was created on broker-a." in words(saved)

    asyncio.run(visit())


def test_a_form_of_another_site_is_refused(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            form = {**FORM, "permission": "6", "csrf": await visitor.csrf()}
            for headers in (
                {"origin": "http://evil.example"},
                {"origin": "null"},
                {"sec-fetch-site": "cross-site"},
                {"sec-fetch-site": "same-site"},
            ):
                refused = await visitor.client.post("/topics/save", data=form, headers=headers)
                assert refused.status_code == 403
                assert "another site" in words(refused)

    asyncio.run(visit())


def test_a_read_only_console_changes_nothing(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server, read_only=True) as visitor:
            shown = await visitor.get("/topics")
            assert "New topic" not in words(shown)
            assert "read-only" in words(shown)
            for route in visitor.client._transport.app.routes:  # type: ignore[attr-defined]
                posted = getattr(getattr(route, "endpoint", None), "__self__", None)
                if posted is None or not posted.action:
                    continue
                refused = await visitor.post(route.path, FORM)
                assert refused.status_code == 403, route.path
                assert "read-only" in words(refused)

    asyncio.run(visit())


def test_what_is_no_form_is_refused(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await visitor.csrf()
            for kind, body, code in (
                ("application/json", b"{}", 415),
                ("", b"", 415),
                ("application/x-www-form-urlencoded", b"a=1&" * 300, 400),
                ("application/x-www-form-urlencoded", b"a" * (65 << 10), 413),
                ("application/x-www-form-urlencoded", b"\xff\xfe%ff", 400),
            ):
                headers = {"content-type": kind}
                refused = await visitor.client.post("/topics/save", content=body, headers=headers)
                assert refused.status_code == code, (kind, code)

    asyncio.run(visit())


def test_other_methods_are_refused(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
                refused = await visitor.client.request(method, "/topics/delete")
                assert refused.status_code == 405
            assert (await visitor.get("/topics/delete")).status_code == 405

    asyncio.run(visit())
