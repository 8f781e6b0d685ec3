"""Debian's Chromium without a window: it opens pages, and tells all that went wrong in them."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    # Each page would start another process, and keep that of the page before.
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
    "--disable-sync",
    "--metrics-recording-only",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
PATIENCE = float(os.environ.get("MQLAKE_BROWSER_PATIENCE", "200"))
"""Seconds to wait for anything."""
_LOOK_INTERVAL = 0.2
"""Seconds; to look at a page takes the browser milliseconds of processor time."""
RELOAD_INTERVAL = 1.0
"""Seconds, where each look opens the page again."""
_OWN = ("chrome:", "data:", "about:", "blob:", "chrome-extension:", "devtools:")

OF_COLOURS = ("color-contrast", "link-in-text-block")
"""axe's rules that look at colours."""

SETTLED = (
    "return document.readyState === 'complete'"
    " && !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')"
)
_TEXT = r"return document.body ? document.body.innerText.replace(/[\t\u00a0]/g, ' ') : ''"
_EXECUTED = "return window.executed || null"


def missing() -> str | None:
    """Return why no browser can be started; None if one can."""
    if not Path(CHROMIUM).exists() or not Path(DRIVER).exists():
        return "without Chromium: apt-get install chromium chromium-driver"
    if shutil.which("npm") is None:
        return "without npm: apt-get install npm"
    return None


class Browser:
    """A browser with a new profile.

    Attributes:
        driver: Selenium's.
    """

    def __init__(self, driver: Any, axe: str) -> None:
        self.driver, self._axe = driver, axe

    def open(self, url: str) -> None:
        """Open a page, and wait until it is complete."""
        self.driver.get(url)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing of the page is being replaced."""
        self.wait(lambda: self.driver.execute_script(SETTLED))

    def wait(self, holds: Any, interval: float = _LOOK_INTERVAL) -> Any:
        """Wait until a condition holds, and return its value."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(
            self.driver,
            PATIENCE,
            interval,
            ignored_exceptions=(StaleElementReferenceException,),
        )
        return waiting.until(lambda _: holds())

    def all(self, selector: str) -> list[Any]:
        """Return the elements that a selector finds."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        """Return the first element that a selector finds, once there is one."""
        return self.wait(lambda: next(iter(self.all(selector)), None))

    @property
    def text(self) -> str:
        """What the page shows. Selenium takes a hundred times as long to find that out."""
        return str(self.driver.execute_script(_TEXT))

    def wait_for(self, text: str) -> None:
        """Wait until the page shows a text."""
        try:
            self.wait(lambda: text in self.text)
        except Exception as error:
            raise AssertionError(f"{text!r} is not in {self.text[:3000]!r}") from error

    def fill(self, selector: str, text: str) -> None:
        """Type a text into a field."""
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def press(self, button: str, within: str = "main") -> None:
        """Press the first button that has a text, and accept what it asks."""
        from selenium.common.exceptions import NoAlertPresentException

        for element in self.all(f"{within} button"):
            if element.text.strip() == button and element.is_displayed():
                self.driver.execute_script("arguments[0].scrollIntoView({block:'center'})", element)
                element.click()
                with suppress(NoAlertPresentException):
                    self.driver.switch_to.alert.accept()
                self.settle()
                return
        raise AssertionError(f"no button {button!r} in {self.text[:3000]!r}")

    def open_details(self) -> None:
        """Open everything that is folded."""
        self.driver.execute_script(
            "for (const one of document.querySelectorAll('details')) one.open = true"
        )

    def dark(self, *, on: bool) -> None:
        """Ask for the dark colours, or for the light ones."""
        value = "dark" if on else "light"
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def size(self, width: int, height: int = 900) -> None:
        """Give the page a size in pixels."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700},
        )

    def violations(self, rules: Sequence[str] = ()) -> list[str]:
        """Return what axe finds serious or critical, one line each.

        Args:
            rules: look for violations of these only.
        """
        if not self.driver.execute_script("return Boolean(window.axe)"):
            self.driver.execute_script(self._axe)
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = {"type": "rule", "values": list(rules)}
        found = self.driver.execute_async_script(
            "const [options, done] = arguments;"
            "axe.run(document, options).then(done, error => done({error: '' + error}))",
            options,
        )
        assert "error" not in found, found
        return [
            f"{one['impact']}: {one['id']}: {one['help']}: {node['html'][:200]}"
            f" {[check['message'] for check in node['any']]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def scrolls_sideways(self) -> bool:
        """Return whether the page is wider than the window."""
        return bool(
            self.driver.execute_script(
                "return document.documentElement.scrollWidth > window.innerWidth + 1"
            )
        )

    def executed(self) -> Any:
        """Return what hostile content has executed; None if nothing."""
        return self.driver.execute_script(_EXECUTED)

    def console_errors(self, but: Sequence[str] = ()) -> list[str]:
        """Return the errors in the console since the last call."""
        entries = self.driver.get_log("browser")
        return [
            one["message"]
            for one in entries
            if one["level"] == "SEVERE" and not any(text in one["message"] for text in but)
        ]

    def requests_elsewhere(self) -> list[str]:
        """Return the addresses that were requested since the last call and are not loopback."""
        found: list[str] = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(_OWN) and urlsplit(url).hostname != "127.0.0.1":
                    found.append(url)
        return found

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))


@contextmanager
def browser(profile: Path, axe: str) -> Generator[Browser]:
    """Yield a browser with a new profile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*_OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.set_script_timeout(120)
        driver.set_page_load_timeout(120)
        yield Browser(driver, axe)
    finally:
        driver.quit()


def skip_without_browser() -> None:
    """Skip the test in one line if no browser can be started."""
    if reason := missing():
        pytest.skip(reason)
