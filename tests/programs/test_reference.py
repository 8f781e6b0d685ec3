"""docs/requests.md is what `python -m mqlake.programs.reference` writes."""

from __future__ import annotations

import re
from pathlib import Path

import mqlake
from mqlake.namesrv.name_server import NameServer
from mqlake.programs.reference import page
from mqlake.protocol.codes import RequestCode
from mqlake.testing import broker

DOCS = Path(__file__).parents[2] / "docs"
_ROW = re.compile(
    r"^\| (\d+) \| `(\w+)` \| `\w+` \| `([\w/]+\.py)` \| ([A-Z or]*) \| (.*) \|$",
    re.MULTILINE,
)


def tables() -> list[list[tuple[str, str, str, str, str]]]:
    """Return the rows of the tables: of the broker, of the name server, of clients."""
    text = (DOCS / "requests.md").read_text(encoding="utf-8")
    return [_ROW.findall(table) for table in text.split("\n## ")[1:]]


def test_the_page_of_requests_has_the_declared_routes() -> None:
    text = (DOCS / "requests.md").read_text(encoding="utf-8")
    assert text == page(), "python -m mqlake.programs.reference > docs/requests.md"


def test_the_page_has_what_running_servers_serve() -> None:
    of_broker, of_name_server, _ = tables()
    assert [int(row[0]) for row in of_name_server] == [route.code for route in NameServer().routes]
    with broker() as running:

        async def codes(server: object) -> list[int]:
            return [route.code for route in server.routes]

        assert [int(row[0]) for row in of_broker] == running.call(codes)


def test_each_row_names_a_code_a_file_and_a_permission() -> None:
    root = Path(mqlake.__file__).parent
    of_broker, of_name_server, of_client = tables()
    for code, name, file, permission, needs in of_broker + of_name_server + of_client:
        assert RequestCode[name] == int(code)
        assert (root / file).is_file()
        assert bool(permission) == bool(needs) == (file != "client/broker_requests.py")


def test_no_code_is_served_twice() -> None:
    for rows in tables():
        codes = [row[0] for row in rows]
        assert len(codes) == len(set(codes)) > 5
