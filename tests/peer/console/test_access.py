"""Who may do what, in a real browser: a viewer, an administrator, and a wrong password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.admin import Admin, users
from mqlake.client import Credentials
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.testing import broker
from tests.auth.closed import CLOSED, ROOT
from tests.peer.console.browser import Browser, skip_without_browser
from tests.peer.console.sites import started_console
from tests.peer.console.test_actions import submit
from tests.peer.rocketmq_cluster import free_ports
from tests.programs.processes import BrokerProcess

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]

BOB = Credentials("bob", "bob-password")


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a console with a login, whose cluster knows two super users; Bob is a viewer."""
    skip_without_browser()
    path = tmp_path_factory.mktemp("closed")
    store = path / "store"
    own = {"authorizationEnabled": "true", "brokerIP1": "127.0.0.1"}
    with broker(store, grpc=False, **CLOSED, **own) as running:  # type: ignore[arg-type]

        async def create() -> None:
            async with Admin(running.name_server, credentials=ROOT) as admin:
                info = UserInfo(BOB.access_key, BOB.secret_key, "Super")
                await users.create(admin, info, None, running.address)

        asyncio.run(create())
        options = ["--login", "--viewer", BOB.access_key, "--store", str(running.store)]
        with started_console(path / "console", running.name_server, options) as url:
            yield url


def log_in(page: Browser, url: str, user: str, password: str) -> None:
    """Fill in the login, and send it."""
    page.open(f"{url}/login")
    page.driver.delete_all_cookies()  # Of the page that is open.
    page.open(f"{url}/topics")
    page.fill("input[name=user]", user)
    page.fill("input[name=password]", password)
    assert page.violations() == []
    page.press("Log in")


def sections(page: Browser) -> list[str]:
    return [each.text for each in page.all(".top nav a")]


def test_a_wrong_password_is_refused(page: Browser, closed: str) -> None:
    page.size(1280)
    log_in(page, closed, ROOT.access_key, "wrong-password")
    page.wait_for("The cluster does not accept this user and password.")
    assert page.violations() == []
    assert sections(page) == []
    page.open(f"{closed}/cluster")
    page.one("input[name=password]")
    assert page.console_errors(but=["401"]) == []


def test_a_viewer_sees_and_changes_nothing(page: Browser, closed: str) -> None:
    page.size(1280)
    log_in(page, closed, BOB.access_key, BOB.secret_key)
    page.wait_for("Topics")
    page.wait_for(BOB.access_key)
    assert sections(page) == ["Cluster", "Topics", "Groups", "Messages", "Delayed"]
    assert "New topic" not in page.text
    page.open(f"{closed}/cluster")
    page.wait_for("broker-a")
    assert page.all("main form[method=post]") == []
    page.open(f"{closed}/store")
    page.wait_for("bob is not a super user, which this needs")
    assert page.violations() == []
    assert page.console_errors(but=["403"]) == []


def test_an_administrator_sees_all_and_logs_out(page: Browser, closed: str) -> None:
    page.size(1280)
    log_in(page, closed, ROOT.access_key, ROOT.secret_key)
    page.wait_for("New topic")
    assert sections(page)[-2:] == ["Store", "SQL"]
    page.open(f"{closed}/topics/new")
    submit(page, "/topics/save", "ByRoot was created", topic="ByRoot")
    page.open(f"{closed}/store")
    page.wait_for("commit log in")
    page.press("Log out", within="header")
    page.one("input[name=password]")
    page.open(f"{closed}/store")
    page.one("input[name=password]")
    assert page.console_errors() == []
    assert page.requests_elsewhere() == []


def test_a_broker_starts_its_own_console(page: Browser, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {"consolePort": port, "brokerIP1": "127.0.0.1"}
    broker_process = BrokerProcess(tmp_path / "store", tmp_path / "log", settings)
    try:
        url = f"http://127.0.0.1:{port}"

        def is_open() -> bool:
            page.driver.get("about:blank")
            try:
                page.open(f"{url}/cluster")
            except Exception:  # noqa: BLE001 (Chromium refuses to open it while nobody listens)
                return False
            return "Every broker answers" in page.text

        page.wait(is_open)
        page.console_errors()
        page.open(f"{url}/store")
        page.wait_for(str(tmp_path / "store"))
        page.wait_for("Last recovery")
        assert page.violations() == []
        assert page.console_errors() == []
    finally:
        assert broker_process.stop() == 0
