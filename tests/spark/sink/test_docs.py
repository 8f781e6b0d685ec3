"""The pages say what the code does."""

from __future__ import annotations

import ast
import re

from mqlake.query.reading.parsing import parse_options
from mqlake.query.store.columns import COLUMNS
from mqlake.spark.options.reference import with_tables
from mqlake.spark.sink.columns import GIVEN_BY_STORE
from mqlake.spark.sink.option_table import SETTINGS, SINK_OPTIONS
from mqlake.spark.sink.options import write_options
from mqlake.spark.sink.reference import tables
from mqlake.store.settings import StoreSettings
from tests.spark.servers import ROOT

PAGE = ROOT / "docs" / "spark-sink.md"
HOW_TO = ROOT / "docs" / "how-to" / "write-with-spark.md"


def test_the_tables_are_up_to_date() -> None:
    page = PAGE.read_text()
    assert with_tables(page, tables()) == page
    assert all(table in page for table in tables().values())


def test_the_defaults_are_those_of_the_store() -> None:
    assert len(SETTINGS) == 9
    assert write_options({"path": "/store"}).settings == StoreSettings()


def test_all_columns_of_the_source_are_known() -> None:
    page = PAGE.read_text()
    assert all(f"`{name}`" in page for name in (*COLUMNS, *GIVEN_BY_STORE))


def test_examples() -> None:
    found = 0
    for page in (PAGE, HOW_TO):
        text = page.read_text()
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            ast.parse(code)
            sink = re.split(r"\.write(?:Stream)?\b", code)[-1]
            for name, value in re.findall(r'\.option\("(\w+)", ("?[\w/-]+"?)\)', sink):
                parse_options(SINK_OPTIONS, {name: value.strip('"')})
                found += 1
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert (page.parent / link).exists(), link
    assert found == 2
