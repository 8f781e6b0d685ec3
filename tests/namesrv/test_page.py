"""The page of the name server has every request and every setting."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.codes import RequestCode

PAGE = (Path(__file__).parents[2] / "docs" / "name-server.md").read_text(encoding="utf-8")


def test_every_request_is_on_the_page() -> None:
    codes = [RequestCode(route.code).name for route in NameServer().routes]
    assert len(codes) > 20
    assert [name for name in codes if name not in PAGE] == []


def test_every_setting_is_on_the_page() -> None:
    names = [field.encode_name for field in msgspec.structs.fields(NamesrvSettings)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
