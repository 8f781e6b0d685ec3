"""Every page in a real browser, with data, on mqlake's broker and on RocketMQ's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.peer.console.browser import OF_COLOURS, RELOAD_INTERVAL, Browser
from tests.peer.console.content import KEY, ORDERS, TRACED, TRACED_KEY, TRACING
from tests.peer.console.sites import ConsoleSite

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(900),
]

IMAGES = Path(__file__).parents[3] / "docs" / "images" / "console"
SHOWN = ("cluster", "group", "messages", "delayed", "store", "retention", "sql-chart")
RECORD = os.environ.get("MQLAKE_RECORD") == "1"

on_one_side = pytest.mark.parametrize("console", ["mqlake"], indirect=True)
"""For what pages do alike, whoever wrote the store and answers as the broker."""

PAGES = {
    "cluster": ("/cluster", "broker-a"),
    "topics": ("/topics", "Orders"),
    "new-topic": ("/topics/new", "Create"),
    "topic": ("/topics/topic?topic=Orders", "Orders"),
    "groups": ("/groups", "billing"),
    "new-group": ("/groups/new", "Create"),
    "group": ("/groups/group?group=billing", "Orders"),
    "messages": ("/messages?topic=Orders&by=key&key=order-4711", "order-4711"),
    "hostile-messages": ("/messages?topic=Hostile&by=time", "window.executed"),
    "tail": ("/messages/tail?topic=Orders", "Orders"),
    "delayed": ("/delayed", "recall-me"),
    "transactions": ("/delayed/half", "half-open"),
    "popped": ("/delayed/popped", "A broker keeps a pop in memory"),
    "store": ("/store", "commitlog/00000000000000000000"),
    "retention": ("/store/retention", "Nothing is deleted then"),
    "verify": ("/store/verify", "Verify now"),
    "lake": ("/store/lake", "--table"),
    "archives": ("/store/archives", "No archive was named"),
    "replicas": ("/store/replicas", "No slave is connected"),
    "sql": ("/sql", "Run"),
    "login": ("/login", "Log in"),
}

WITHOUT_BROKER = ("new-topic", "new-group", "verify", "lake", "archives", "sql", "login")
"""Pages that do not depend on what a broker answers or has written."""


@pytest.mark.parametrize("name", [name for name in PAGES if name not in WITHOUT_BROKER])
def test_every_page_is_whole(page: Browser, console: ConsoleSite, name: str) -> None:
    open_and_check(page, console, name)


@on_one_side
@pytest.mark.parametrize("name", WITHOUT_BROKER)
def test_every_page_without_a_broker_is_whole(
    page: Browser, console: ConsoleSite, name: str
) -> None:
    open_and_check(page, console, name)


def open_and_check(page: Browser, console: ConsoleSite, name: str) -> None:
    path, text = PAGES[name]
    page.open(console.url + path)
    page.wait_for(text)
    check(page, console, name)


def check(page: Browser, console: ConsoleSite, name: str) -> None:
    """Check what holds for every page, in both colours and on a small screen.

    The pages of both sides come from the same templates: axe looks at those of one side.
    """
    page.open_details()
    is_whole = console.side == "mqlake"
    is_shown = RECORD and is_whole and name in SHOWN
    if is_shown:
        page.screenshot(IMAGES / f"{name}.png")
    if is_whole:
        assert page.violations() == []
        page.dark(on=True)
        assert page.violations(OF_COLOURS) == []
    if is_shown and name == "group":
        page.screenshot(IMAGES / f"{name}-dark.png")
    page.size(375, 700)
    assert not page.scrolls_sideways()
    if is_whole:
        assert page.violations() == []
    if is_shown and name == "group":
        page.screenshot(IMAGES / f"{name}-small.png")
    assert page.executed() is None
    assert page.console_errors() == []
    assert page.requests_elsewhere() == []


def test_a_message_is_shown_with_its_trace(page: Browser, console: ConsoleSite) -> None:
    page.open(f"{console.url}/messages?topic={TRACED}&by=key&key={TRACED_KEY}")
    page.one("tbody a").click()
    page.wait(lambda: f"consumed {TRACING}" in refreshed(page).text, RELOAD_INTERVAL)
    assert "sent tracing-shop" in page.text
    assert f"delivered {TRACING}" in page.text
    check(page, console, "message")


def test_a_message_is_recalled(page: Browser, console: ConsoleSite) -> None:
    page.open(f"{console.url}/delayed?topic=Later")
    page.wait_for("recall-me")
    rows = page.all("tbody tr")
    (row,) = [each for each in rows if "recall-me" in each.text]
    row.find_element("css selector", "button").click()
    page.driver.switch_to.alert.accept()
    page.wait_for("was recalled")
    page.wait(lambda: "recall-me" not in refreshed(page).text, RELOAD_INTERVAL)
    assert page.executed() is None


def refreshed(page: Browser) -> Browser:
    page.open(page.driver.current_url)
    return page


@on_one_side
def test_a_store_is_verified(page: Browser, console: ConsoleSite) -> None:
    page.open(f"{console.url}/store/verify")
    page.press("Verify now")
    page.wait_for("No damage was found")
    check(page, console, "verify-done")


def run_sql(page: Browser, sql: str, text: str) -> None:
    """Run a statement; wait for a text."""
    page.fill("textarea", sql)
    page.press("Run")
    page.wait_for(text)


@on_one_side
def test_sql_is_run_and_drawn(page: Browser, console: ConsoleSite) -> None:
    page.open(f"{console.url}/sql")
    by_second = (
        "SELECT date_trunc('second', storeTimestamp) AS second, count(*) AS messages"
        " FROM messages GROUP BY ALL ORDER BY second"
    )
    run_sql(page, by_second, "rows in")
    page.one("#chart canvas")
    check(page, console, "sql-chart")


@on_one_side
def test_sql_is_refused_and_shows_hostile_rows(page: Browser, console: ConsoleSite) -> None:
    page.open(f"{console.url}/sql")
    run_sql(page, "SELECT * FROM read_csv('/etc/passwd')", "Permission Error")
    run_sql(page, f"SELECT keys FROM messages WHERE topic = '{ORDERS}' ORDER BY keys", KEY)
    run_sql(page, "SELECT * FROM messages WHERE topic = 'Hostile'", "rows in")
    check(page, console, "sql-hostile")


@on_one_side
def test_refreshes_do_not_move_the_page(page: Browser, console: ConsoleSite) -> None:
    page.size(900, 400)
    page.open(f"{console.url}/delayed")
    page.wait_for("by-level")
    page.driver.execute_script("window.scrollTo(0, 150); window.refreshed = 0;")
    page.driver.execute_script(
        "document.addEventListener('htmx:afterSettle', () => { window.refreshed += 1; })"
    )
    page.one("tbody tr")
    before = page.driver.execute_script("return window.scrollY")
    page.wait(lambda: page.driver.execute_script("return window.refreshed") >= 1)
    assert page.driver.execute_script("return window.scrollY") == before
    assert page.console_errors() == []


@on_one_side
def test_the_keyboard_reaches_everything(page: Browser, console: ConsoleSite) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open(f"{console.url}/delayed")
    body = page.one("body")
    body.send_keys(Keys.TAB)
    assert "Skip to the content" in page.driver.switch_to.active_element.text
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    reached: set[str] = set()
    for _ in range(60):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        element = page.driver.switch_to.active_element
        reached.add(f"{element.tag_name}:{element.text or element.get_attribute('name')}")
    assert "button:Show" in reached
    assert any(name.startswith("select:") for name in reached)
    page.one("body").send_keys("/")
    assert page.driver.switch_to.active_element.get_attribute("name") in ("topic", "broker")


@on_one_side
def test_times_are_in_the_zone_of_the_viewer(page: Browser, console: ConsoleSite) -> None:
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    try:
        page.open(f"{console.url}/delayed")
        page.wait_for("by-level")
        assert "Asia/Tokyo" in page.text
        time = page.one("main time")
        stated = time.get_attribute("datetime")
        assert stated.endswith("Z")
        hour = (int(stated[11:13]) + 9) % 24
        assert time.text[11:13] == f"{hour:02d}"
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
