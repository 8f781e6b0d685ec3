"""The pages say what the code does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mqlake.query.reading.parsing import parse_options
from mqlake.query.store.option_table import SOURCE_OPTIONS
from mqlake.spark.options.reference import with_tables
from mqlake.spark.source.reference import tables
from tests.spark.servers import ROOT

PAGE = ROOT / "docs" / "spark-source.md"
HOW_TO = ROOT / "docs" / "how-to" / "read-with-spark.md"


def test_the_tables_are_up_to_date() -> None:
    page = PAGE.read_text()
    assert with_tables(page, tables()) == page
    assert all(table in page for table in tables().values())


def test_options_in_examples_exist() -> None:
    found = 0
    for page in (PAGE, HOW_TO):
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            ast.parse(code)
            source = code.split(".writeStream")[0]
            for name, value in re.findall(r'\.option\("(\w+)", ("?[\w-]+"?)\)', source):
                parse_options(SOURCE_OPTIONS, {name: value.strip('"').replace("_", "")})
                found += 1
    assert found >= 8


def test_links_lead_somewhere() -> None:
    for page in (PAGE, HOW_TO):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / Path(link)).exists(), link
