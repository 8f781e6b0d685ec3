"""The changes that pages offer, in a real browser, on mqlake's broker and on RocketMQ's."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.console.messages.parcels import NAME, descriptors
from tests.peer.console.browser import RELOAD_INTERVAL, Browser
from tests.peer.console.content import (
    DEAD,
    HANDLED,
    IDLE,
    ORDERS,
    PARCELS,
    SHIPPING,
    TRACED,
    TRACED_KEY,
)
from tests.peer.console.sites import ConsoleSite

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]


def submit(page: Browser, action: str, text: str, **fields: str) -> None:
    """Fill in the form with an action, send it, and wait for what the next page says."""
    from selenium.common.exceptions import NoAlertPresentException

    page.open_details()
    form = f"form[action='{action}']"
    for name, value in fields.items():
        field = page.one(f"{form} [name={name}]")
        if field.tag_name == "select":
            page.driver.execute_script("arguments[0].value = arguments[1]", field, value)
        else:
            field.clear()
            field.send_keys(value)
    button = page.one(f"{form} button")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    with suppress(NoAlertPresentException):
        page.driver.switch_to.alert.accept()
    page.wait(lambda: text in page.one("#notices").text)
    assert page.executed() is None
    assert page.console_errors() == []


def listed(page: Browser, url: str) -> list[str]:
    """Return what a list has: a console keeps its lists for some seconds."""
    page.open(url)
    return [link.text for link in page.all("tbody a")]


def test_a_topic_from_its_creation_to_its_end(page: Browser, console: ConsoleSite) -> None:
    page.open(f"{console.url}/topics/new")
    submit(page, "/topics/save", "Fresh was created", topic="Fresh")
    page.open(f"{console.url}/topics/topic?topic=Fresh")
    body = "<script>window.executed='sent'</script>"
    submit(page, "/topics/send", "was stored", body=body, keys="fresh-key")
    open_message(page, console, "Fresh", "fresh-key")
    page.wait_for("window.executed='sent'")
    assert page.executed() is None
    page.open(f"{console.url}/topics/topic?topic=Fresh")
    submit(page, "/topics/save", "Fresh was changed", write="6", read="6")
    submit(page, "/topics/delete", "Fresh was deleted", typed="Fresh")
    page.wait(lambda: "Fresh" not in listed(page, f"{console.url}/topics?q=Fresh"), RELOAD_INTERVAL)


def test_a_group_from_its_creation_to_its_end(page: Browser, console: ConsoleSite) -> None:
    page.open(f"{console.url}/groups/new")
    submit(page, "/groups/save", "fresh-group", group="fresh-group")
    group = f"{console.url}/groups/group?group=fresh-group"
    page.open(group)
    submit(page, "/groups/save", "fresh-group", retries="3")
    page.open(group)
    submit(page, "/groups/delete", "fresh-group was deleted", typed="fresh-group")
    if console.side == "mqlake":  # RocketMQ's broker may still list it: it creates groups by itself
        page.wait(
            lambda: "fresh-group" not in listed(page, f"{console.url}/groups?q=fresh-group"),
            RELOAD_INTERVAL,
        )


def test_the_offsets_of_a_group_are_changed(page: Browser, console: ConsoleSite) -> None:
    group = f"{console.url}/groups/group?group=billing"
    page.open(group)
    submit(page, "/groups/copy", IDLE, target=IDLE, topic=ORDERS)
    page.open(group)
    submit(page, "/groups/reset", "were reset", topic=ORDERS, time=str(int(time.time()) * 1000))
    page.open(group)
    submit(page, "/groups/skip", "was skipped", topic=ORDERS)


def open_message(page: Browser, console: ConsoleSite, topic: str, key: str) -> None:
    """Open the page of a message by its key."""

    def is_found() -> bool:
        page.open(f"{console.url}/messages?topic={topic}&by=key&key={key}")
        return len(page.all("tbody tr")) == 1

    page.wait(is_found, RELOAD_INTERVAL)
    page.one("tbody a").click()
    page.wait_for("Who has consumed it")


def test_a_dead_letter_is_delivered_to_its_group_again(page: Browser, console: ConsoleSite) -> None:
    assert DEAD not in console.content.handled
    open_message(page, console, f"%25DLQ%25{SHIPPING}", DEAD)
    submit(page, "/messages/resend", f"A copy was sent to group {SHIPPING}")
    page.wait(lambda: DEAD in console.content.handled)


def test_one_consumer_consumes_a_message_now(page: Browser, console: ConsoleSite) -> None:
    open_message(page, console, PARCELS, HANDLED)
    page.wait_for(f"{SHIPPING} has consumed it")
    before = console.content.handled.count(HANDLED)
    submit(page, "/messages/consume", "answered CR_SUCCESS", group=SHIPPING)
    assert console.content.handled.count(HANDLED) == before + 1


def choose(page: Browser, path: Path) -> str:
    """Choose the file of a schema; return the format that the form has then."""
    page.open_details()
    page.one("input[type=file]").send_keys(str(path))
    is_valid = "return document.querySelector('input[type=file]').checkValidity()"
    filled = "return document.querySelector('#schema-text').value !== ''"
    run = page.driver.execute_script
    page.wait(lambda: run(filled) or not run(is_valid))
    assert run(is_valid) == (path.stat().st_size <= 1 << 20)
    return str(run("return document.querySelector('select[name=form]').value"))


def test_a_body_is_read_by_an_uploaded_schema(
    page: Browser, console: ConsoleSite, tmp_path: Path
) -> None:
    (tmp_path / "shop.desc").write_bytes(descriptors())
    (tmp_path / "other.avsc").write_text('"long"')
    (tmp_path / "large.desc").write_bytes(bytes((1 << 20) + 1))
    open_message(page, console, TRACED, TRACED_KEY)
    choose(page, tmp_path / "large.desc")
    assert choose(page, tmp_path / "other.avsc") == "avro"
    assert choose(page, tmp_path / "shop.desc") == "protobuf"
    page.fill("input[name=message]", NAME)
    page.press("Read")
    page.wait_for("By the schema")
    assert '"id": 4711' in page.text
    assert '"state": "SENT"' in page.text
    assert "window.executed='schema'" in page.text
    assert page.executed() is None
    assert page.violations() == []
    assert page.console_errors() == []
