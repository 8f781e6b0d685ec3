"""The page says what the code does."""

from __future__ import annotations

import ast
import re

from mqlake.query.live.option_table import LIVE_OPTIONS
from mqlake.query.reading.parsing import parse_options
from mqlake.spark.live.reference import access_tables, tables
from mqlake.spark.options.reference import with_tables
from tests.spark.servers import ROOT

PAGE = ROOT / "docs" / "spark-live.md"


def test_the_tables_are_up_to_date() -> None:
    """`python -m mqlake.spark.live.reference docs/spark-live.md` writes them."""
    page = PAGE.read_text()
    assert with_tables(page, tables()) == page
    assert all(table in page for table in tables().values())


def test_the_table_of_access_is_up_to_date() -> None:
    """`python -m mqlake.spark.live.reference docs/tls.md` writes it."""
    page = (PAGE.parent / "tls.md").read_text()
    assert with_tables(page, access_tables()) == page
    assert all(table in page for table in access_tables().values())


def test_options_in_examples_exist() -> None:
    found = 0
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        ast.parse(code)
        source = code.split(".writeStream")[0]
        for name, value in re.findall(r'\.option\("(\w+)", ("?[\w:;-]+"?)\)', source):
            parse_options(LIVE_OPTIONS, {name: value.strip('"').replace("_", "")})
            found += 1
    assert found >= 7


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE.read_text()):
        assert (PAGE.parent / link).exists(), link
