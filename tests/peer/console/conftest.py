from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peer.console.axe import axe_script
from tests.peer.console.browser import Browser, browser, skip_without_browser
from tests.peer.console.sites import SIDES, ConsoleSite, started_site
from tests.peer.java_build import JavaMissingError


@pytest.fixture(scope="package", name="page")
def started_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that all tests share."""
    skip_without_browser()
    try:
        axe = axe_script()
    except OSError as reason:
        pytest.skip(f"without axe-core: {reason}")
    with browser(tmp_path_factory.mktemp("profile"), axe) as found:
        yield found


@pytest.fixture(autouse=True)
def begin_anew(page: Browser) -> None:
    """Leave the page of the test before, its colours and size, and what it complained about."""
    page.open("about:blank")
    page.dark(on=False)
    page.size(1280)
    page.console_errors()
    page.requests_elsewhere()


@pytest.fixture(scope="package", params=SIDES)
def console(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConsoleSite]:
    """A console of each side, with content: one after the other for all tests."""
    skip_without_browser()
    path: Path = tmp_path_factory.mktemp(request.param)
    try:
        with started_site(request.param, path) as found:
            yield found
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
