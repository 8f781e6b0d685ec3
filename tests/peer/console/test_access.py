"""Who may do what, in a real browser: a viewer, an administrator, and a wrong password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from mqlake.admin import Admin, acls, topics, users
from mqlake.client import Credentials
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.testing import broker
from tests.auth.closed import CLOSED, ROOT
from tests.peer.console.browser import Browser, skip_without_browser
from tests.peer.console.sites import SIDES, started_console
from tests.peer.console.test_actions import submit
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_cluster import PROVIDERS, Cluster, free_ports
from tests.programs.processes import BrokerProcess
from tests.programs.test_console import listens
from tests.until import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]

BOB = Credentials("bob", "bob-password")
ANN = Credentials("ann", "ann-password")
_SETTINGS = {**CLOSED, "authorizationEnabled": "true", "brokerIP1": "127.0.0.1"}


class ClosedSite(NamedTuple):
    """A console with a login, before a cluster that checks signatures and permissions.

    ROOT and Bob are super users, of whom Bob is a viewer; Ann may read the topic Seen and ask for
    what describes the cluster.

    Attributes:
        side: whose broker it shows.
        url: without a path.
        log: the file with its log.
    """

    side: str
    url: str
    log: Path


@pytest.fixture(scope="module", params=SIDES)
def closed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClosedSite]:
    skip_without_browser()
    path = tmp_path_factory.mktemp("closed")
    store = path / "store"
    with ExitStack() as stack:
        if request.param == "mqlake":
            running = stack.enter_context(broker(store, grpc=False, **_SETTINGS))  # type: ignore[arg-type]
            names = running.name_server
        else:
            try:
                cluster = Cluster(path, store, {**_SETTINGS, **PROVIDERS})
            except JavaMissingError as reason:
                pytest.skip(f"without the real RocketMQ: {reason}")
            stack.callback(cluster.stop)
            cluster.start()
            names = cluster.names
        asyncio.run(create_users(names))
        options = ["--login", "--viewer", BOB.access_key, "--store", str(store)]
        url = stack.enter_context(started_console(path / "console", names, options))
        yield ClosedSite(request.param, url, path / "console" / "console.log")


async def create_users(names: str) -> None:
    async with Admin(names, credentials=ROOT) as admin:
        for user, kind in ((BOB, "Super"), (ANN, "Normal")):
            info = UserInfo(user.access_key, user.secret_key, kind)
            await users.create(admin, info, "main", None)
        for name in ("Seen", "Hidden"):
            topic = Topic(topic_name=name, read_queue_nums=1, write_queue_nums=1)
            await topics.update(admin, topic, "main", None)
        for resource, actions in (("Cluster:*", ["Get", "List"]), ("Topic:Seen", ["Get", "Sub"])):
            await acls.create(admin, "User:ann", acls.Grant([resource], actions), "main", None)


def log_in(page: Browser, url: str, user: str, password: str) -> None:
    """Fill in the login, and send it."""
    page.size(1280)
    page.open(f"{url}/login")
    page.driver.delete_all_cookies()  # Of the page that is open.
    page.open(f"{url}/topics")
    page.fill("input[name=user]", user)
    page.fill("input[name=password]", password)
    assert page.violations() == []
    page.press("Log in")


def sections(page: Browser) -> list[str]:
    return [each.text for each in page.all(".top nav a")]


def test_a_wrong_password_is_refused(page: Browser, closed: ClosedSite) -> None:
    log_in(page, closed.url, ROOT.access_key, "wrong-password")
    page.wait_for("The cluster does not accept this user and password.")
    assert page.violations() == []
    assert sections(page) == []
    page.open(f"{closed.url}/cluster")
    page.one("input[name=password]")
    assert page.console_errors(but=["401"]) == []


def test_a_viewer_sees_and_changes_nothing(page: Browser, closed: ClosedSite) -> None:
    log_in(page, closed.url, BOB.access_key, BOB.secret_key)
    page.wait_for("Topics")
    page.wait_for(BOB.access_key)
    assert sections(page) == ["Cluster", "Topics", "Groups", "Messages", "Delayed"]
    assert "New topic" not in page.text
    page.open(f"{closed.url}/cluster")
    page.wait_for("broker-a")
    assert page.all("main form[method=post]") == []
    page.open(f"{closed.url}/store")
    page.wait_for("bob is not a super user, which this needs")
    assert page.violations() == []
    assert page.console_errors(but=["403"]) == []


def test_a_user_may_do_what_the_acl_allows(page: Browser, closed: ClosedSite) -> None:
    log_in(page, closed.url, ANN.access_key, ANN.secret_key)
    page.wait_for("Seen")
    assert sections(page) == ["Cluster", "Topics", "Groups", "Messages", "Delayed"]
    page.open(f"{closed.url}/topics/topic?topic=Seen")
    page.wait_for("messages stored")
    page.open(f"{closed.url}/topics/new")
    page.fill("input[name=topic]", "ByAnn")
    page.press("Create")
    page.wait_for("ann has no permission to access Topic:ByAnn")
    assert page.violations() == []
    assert page.console_errors(but=["403"]) == []
    (line,) = [each for each in closed.log.read_text().splitlines() if "ByAnn" in each]
    assert 'audit topics.save user="ann" from=127.0.0.1' in line
    assert 'result="failed: ' in line


def test_an_administrator_sees_all_and_logs_out(page: Browser, closed: ClosedSite) -> None:
    log_in(page, closed.url, ROOT.access_key, ROOT.secret_key)
    page.wait_for("New topic")
    assert sections(page)[-2:] == ["Store", "SQL"]
    page.open(f"{closed.url}/topics/new")
    submit(page, "/topics/save", "ByRoot was created", topic="ByRoot")
    (line,) = [each for each in closed.log.read_text().splitlines() if "ByRoot" in each]
    assert 'audit topics.save user="root" from=127.0.0.1' in line
    assert line.endswith('result="done"')
    page.open(f"{closed.url}/store")
    page.wait_for("commit log in")
    page.press("Log out", within="header")
    page.one("input[name=password]")
    page.open(f"{closed.url}/store")
    page.one("input[name=password]")
    assert page.console_errors() == []
    assert page.requests_elsewhere() == []
    assert ROOT.secret_key not in closed.log.read_text()


def started(page: Browser, url: str, text: str) -> None:
    """Open a page of a console that is being started, once it shows a text."""
    port = urlsplit(url).port
    assert port is not None
    wait_until(lambda: listens(port))  # A browser takes much longer to find that nobody does.

    def is_open() -> bool:
        page.driver.get("about:blank")
        try:
            page.open(url)
        except Exception:  # noqa: BLE001 (Chromium refuses to open it while nobody listens)
            return False
        return text in page.text

    page.wait(is_open)
    page.console_errors()


def test_a_broker_starts_its_own_console(page: Browser, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {"consolePort": port, "brokerIP1": "127.0.0.1"}
    broker_process = BrokerProcess(tmp_path / "store", tmp_path / "log", settings)
    try:
        url = f"http://127.0.0.1:{port}"
        started(page, f"{url}/cluster", "Every broker answers")
        page.open(f"{url}/store")
        page.wait_for(str(tmp_path / "store"))
        page.wait_for("Last recovery")
        assert page.violations() == []
        assert page.console_errors() == []
    finally:
        assert broker_process.stop() == 0


def test_the_console_of_a_broker_with_users_has_a_login(page: Browser, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    config, log = tmp_path / "broker.conf", tmp_path / "log"
    settings = {**_SETTINGS, "consolePort": port}
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    broker_process = BrokerProcess(tmp_path / "store", log, {}, config=config)
    try:
        url = f"http://127.0.0.1:{port}"
        started(page, f"{url}/topics", "Password")
        assert sections(page) == []
        asyncio.run(create_users(broker_process.name_server))
        log_in(page, url, ANN.access_key, ANN.secret_key)
        page.wait_for("Seen")
        assert "Store" not in sections(page)
        page.open(f"{url}/topics/new")
        page.fill("input[name=topic]", "ByAnn")
        page.press("Create")
        page.wait_for("ann has no permission to access Topic:ByAnn")
        assert page.console_errors(but=["403"]) == []
        log_in(page, url, ROOT.access_key, ROOT.secret_key)
        page.wait_for("New topic")
        page.open(f"{url}/topics/new")
        submit(page, "/topics/save", "ByRoot was created", topic="ByRoot")
        page.open(f"{url}/store")
        page.wait_for("Last recovery")
    finally:
        assert broker_process.stop() == 0
    lines = [each for each in log.read_text().splitlines() if " audit topics.save " in each]
    assert ['user="ann"' in each for each in lines] == [True, False]
    assert 'result="failed: ' in lines[0]
    assert lines[1].endswith('result="done"')
