"""The login: the cluster's users, their roles, and the end of a session."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.admin import Admin, users
from mqlake.client import Credentials
from mqlake.console.access.login import own_path
from mqlake.console.access.roles import ConsoleRole
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.testing import broker
from mqlake.testing.running_broker import RunningBroker
from tests.auth.closed import CLOSED, ROOT
from tests.console.site import site, words

ALICE = Credentials("alice", "alice-password")


@pytest.fixture(scope="module")
def closed() -> Iterator[RunningBroker]:
    """A broker that checks signatures and permissions, with a super user and another user."""
    with broker(**(CLOSED | {"authorizationEnabled": "true"})) as running:

        async def create() -> None:
            async with Admin(running.name_server, credentials=ROOT) as admin:
                info = UserInfo(ALICE.access_key, ALICE.secret_key, "Normal")
                await users.create(admin, info, None, running.address)

        asyncio.run(create())
        yield running


def test_every_page_leads_to_the_login(closed: RunningBroker) -> None:
    async def visit() -> None:
        async with site(closed.name_server, login=True) as visitor:
            for path in ("/", "/topics", "/groups/group?group=x", "/nothing"):
                shown = await visitor.get(path)
                assert shown.url.path == "/login", path
            part = await visitor.get("/topics", **{"hx-request": "true"})
            assert part.status_code == 401
            assert part.headers["hx-redirect"] == "/login?next=%2Ftopics"

    asyncio.run(visit())


def test_a_super_user_logs_in_and_out(closed: RunningBroker) -> None:
    async def visit() -> None:
        async with site(closed.name_server, login=True) as visitor:
            shown = await visitor.log_in(ROOT.access_key, ROOT.secret_key)
            assert shown.url.path == "/cluster"
            assert "root" in words(shown)
            assert "broker-a" in words(shown)
            await visitor.post("/logout")
            assert (await visitor.get("/cluster")).url.path == "/login"

    asyncio.run(visit())


@pytest.mark.parametrize(
    ("user", "secret"),
    [("root", "wrong-password"), ("nobody", "any-password"), ("has no permission to access", "x")],
)
def test_a_wrong_password_is_refused(closed: RunningBroker, user: str, secret: str) -> None:
    async def visit() -> None:
        async with site(closed.name_server, login=True) as visitor:
            refused = await visitor.log_in(user, secret)
            assert refused.status_code in (400, 401)
            assert (await visitor.get("/cluster")).url.path == "/login"

    asyncio.run(visit())


def test_a_user_without_permissions_is_known_and_sees_why(closed: RunningBroker) -> None:
    async def visit() -> None:
        async with site(closed.name_server, login=True) as visitor:
            await visitor.log_in(ALICE.access_key, ALICE.secret_key)
            shown = await visitor.get("/cluster")
            assert shown.url.path == "/cluster"
            assert "alice" in words(shown)
            assert "It does not show its state to this user." in words(shown)
            assert "SQL" not in words(shown)
            refused = await visitor.post(
                "/topics/save",
                {
                    "topic": "t",
                    "new": "1",
                    "cluster": "main",
                    "read": "1",
                    "write": "1",
                    "permission": "6",
                },
            )
            assert refused.status_code == 403
            assert "alice" in words(refused)

    asyncio.run(visit())


def test_a_viewer_changes_nothing_and_only_super_users_see_stores(closed: RunningBroker) -> None:
    async def visit() -> None:
        name, secret = ROOT.access_key, ROOT.secret_key
        async with site(closed.name_server, login=True, viewers=frozenset({name})) as visitor:
            await visitor.log_in(name, secret)
            assert (await visitor.get("/topics")).status_code == 200
            refused = await visitor.post("/topics/delete", {"topic": "t"})
            assert refused.status_code == 403
            assert "only a viewer" in words(refused)
            assert (await visitor.get("/store")).status_code == 403

    asyncio.run(visit())


def test_who_is_no_super_user_any_more_sees_no_store(closed: RunningBroker, tmp_path: Path) -> None:
    """Stores have the console's own rights: their pages ask again whether a user is one."""
    carol = Credentials("carol", "carol-password")

    async def visit() -> None:
        async with (
            Admin(closed.name_server, credentials=ROOT) as admin,
            site(closed.name_server, login=True, stores=(tmp_path,)) as visitor,
        ):
            info = UserInfo(carol.access_key, carol.secret_key, "Super")
            await users.create(admin, info, None, closed.address)
            await visitor.log_in(carol.access_key, carol.secret_key)
            session = visitor.console.sessions.find(visitor.client.cookies[visitor.console.cookie])
            assert session is not None
            pages = [f"{page}?store={tmp_path}" for page in ("/delayed", "/delayed/half", "/store")]
            assert 403 not in [(await visitor.get(page)).status_code for page in pages]
            info = UserInfo(carol.access_key, carol.secret_key, "Normal")
            await users.update(admin, info, None, closed.address)
            for page in pages:
                session.role, session.confirmed = ConsoleRole.ADMIN, -math.inf
                assert (await visitor.get(page)).status_code == 403, page

    asyncio.run(visit())


def test_nobody_logs_in_to_a_cluster_that_checks_no_password(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server, login=True) as visitor:
            refused = await visitor.log_in("root", "any-password")
            assert refused.status_code == 409
            assert "checks nobody's password" in words(refused)
            assert (await visitor.get("/cluster")).url.path == "/login"

    asyncio.run(visit())


def test_passwords_cannot_be_guessed_fast(closed: RunningBroker) -> None:
    async def visit() -> None:
        async with site(closed.name_server, login=True) as visitor:
            codes = [
                (await visitor.log_in("root", f"guessed-password-{number}")).status_code
                for number in range(12)
            ]
            assert codes == [401] * 10 + [429] * 2
            assert (await visitor.log_in(ROOT.access_key, ROOT.secret_key)).status_code == 429

    asyncio.run(visit())


def test_a_login_replaces_the_session(closed: RunningBroker) -> None:
    async def visit() -> None:
        async with site(closed.name_server, login=True) as visitor:
            await visitor.get("/login")
            before = visitor.client.cookies[visitor.console.cookie]
            await visitor.log_in(ROOT.access_key, ROOT.secret_key)
            assert visitor.client.cookies[visitor.console.cookie] != before
            stranger = visitor.console.sessions.find(before)
            assert stranger is not None
            assert stranger.user == ""

    asyncio.run(visit())


def test_logins_are_in_the_log_without_passwords(
    closed: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async def visit() -> None:
        async with site(closed.name_server, login=True) as visitor:
            await visitor.log_in("root", "mistyped-password")
            await visitor.log_in(ROOT.access_key, ROOT.secret_key)

    with caplog.at_level(logging.INFO, "mqlake.console.audit"):
        asyncio.run(visit())
    lines = [record.getMessage() for record in caplog.records if "audit" in record.name]
    assert [line.rpartition(" ")[2] for line in lines] == ['result="refused"', 'result="done"']
    assert "password" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/topics?q=a", "/topics?q=a"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("", "/"),
    ],
)
def test_a_login_leads_only_to_own_pages(text: str, path: str) -> None:
    assert own_path(text) == path
