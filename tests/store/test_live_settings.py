"""Settings that are replaced while parts use them."""

from __future__ import annotations

import msgspec
import pytest

from mqlake.errors import StoreError
from mqlake.store.live_settings import LiveSettings, current
from mqlake.store.settings import StoreSettings


def with_(settings: StoreSettings, **values: object) -> StoreSettings:
    return msgspec.structs.replace(settings, **values)


def test_those_who_subscribed_to_what_changed_are_told() -> None:
    live, told = LiveSettings(StoreSettings()), list[str]()
    live.on_change(lambda: told.append("size"), "max_message_size")
    live.on_change(lambda: told.append("times"), "transaction_time_out", "file_reserved_time")

    live.replace(with_(live.now, max_message_size=5))
    assert (told, live.now.max_message_size) == (["size"], 5)
    live.replace(with_(live.now, max_message_size=5))
    assert told == ["size"], "nothing has changed"
    live.replace(with_(live.now, file_reserved_time=1, transaction_time_out=1))
    assert told == ["size", "times"], "once, for two fields"


def test_a_snapshot_is_never_changed() -> None:
    before = StoreSettings()
    live = LiveSettings(before)
    live.replace(with_(before, max_message_size=5))
    assert before.max_message_size == 4 << 20
    with pytest.raises(AttributeError):
        live.now.max_message_size = 6  # pyright: ignore[reportAttributeAccessIssue]


def test_what_takes_effect_at_a_restart_cannot_be_replaced() -> None:
    live, told = LiveSettings(StoreSettings()), list[str]()
    live.on_change(lambda: told.append("size"), "max_message_size")
    before = live.now
    with pytest.raises(StoreError, match="setting listenPort takes effect only at a restart"):
        live.replace(with_(before, max_message_size=5, listen_port=5))
    assert live.now is before
    assert told == []


@pytest.mark.parametrize("name", ["listen_port", "maxMessageSize", "nothing"])
def test_nobody_subscribes_to_what_never_changes(name: str) -> None:
    with pytest.raises(StoreError, match=f"setting {name} does not change"):
        LiveSettings(StoreSettings()).on_change(lambda: None, name)


def test_a_subscriber_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    live, told = LiveSettings(StoreSettings()), list[str]()
    live.on_change(lambda: 1 // 0, "max_message_size")
    live.on_change(lambda: told.append("size"), "max_message_size")
    live.replace(with_(live.now, max_message_size=5))
    assert told == ["size"]
    assert "a change of max_message_size was not applied" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_settings_that_are_live_stay_themselves() -> None:
    live = LiveSettings(StoreSettings())
    assert current(live) is live
    assert current(live.now).now is live.now
