"""The settings of a proxy: their limits, and what is written about them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.errors import MqlakeError, StoreError
from mqlake.grpc.messages import Code
from mqlake.proxy.listening import ListeningService, grpc_limits
from mqlake.proxy.reference import page
from mqlake.proxy.settings import ProxySettings
from mqlake.store.settings import settings_of
from tests import simulated
from tests.hostile_settings import hostile
from tests.proxy.sending.messages import message, send
from tests.proxy.serving import serving

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [field.name for field in msgspec.structs.fields(ProxySettings)]


def test_the_page_of_settings_is_as_the_settings_are() -> None:
    text = (DOCS / "proxy-settings.md").read_text()
    assert text == page(), "python -m mqlake.proxy.reference > docs/proxy-settings.md"


def test_every_setting_has_a_meaning() -> None:
    assert re.findall(r"^\| `(\w+)`.*\|\s*\|$", page(), re.MULTILINE) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_refused_in_one_line_or_the_service_runs_with_it(
    tmp_path: Path, name: str
) -> None:
    async def run(settings: ProxySettings) -> None:
        async with serving(tmp_path, settings) as calls:
            calls.topic("T")
            found = await calls.ask("SendMessage", send(message()))
            # It may be too large for the settings.
            assert found.status.code == Code.OK or 40000 <= found.status.code < 50000
            ListeningService(calls.service, None, "")

    tried: set[Any] = set()
    refusals: list[str] = []
    for value in hostile(ProxySettings, name):
        try:
            settings = settings_of(ProxySettings, {name: value})
        except MqlakeError as error:
            refusals.append(str(error))
            continue
        found = getattr(settings, name)
        if found not in tried:
            tried.add(found)
            simulated.run(run(settings))
    assert tried
    assert all("\n" not in text and len(text) < 1000 for text in refusals)


def test_a_setting_that_is_not_allowed_names_the_limits() -> None:
    with pytest.raises(StoreError, match=r"maxBatchMessages.*1 to 32767"):
        ProxySettings(max_batch_messages=0)


def test_the_largest_message_fits_into_a_request() -> None:
    limits = grpc_limits(ProxySettings(max_message_size=64 << 20))
    assert limits.message >= 64 << 20
    assert limits.memory >= 4 * limits.message


def test_the_sizes_of_requests_are_settings() -> None:
    limits = grpc_limits(
        ProxySettings(
            max_message_size=1 << 20,
            grpc_max_inbound_message_size=3 << 20,
            grpc_max_inbound_request_size=5 << 20,
        )
    )
    assert (limits.message, limits.other) == (3 << 20, 5 << 20)
    assert grpc_limits(ProxySettings()).message == 8 << 20
