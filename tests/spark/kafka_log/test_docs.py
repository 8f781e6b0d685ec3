"""The page says what the code does."""

from __future__ import annotations

import ast
import re

from mqlake.query.kafka_log.option_table import SOURCE_OPTIONS
from mqlake.query.reading.parsing import parse_options
from mqlake.spark.kafka_log.reference import with_our_tables
from tests.spark.servers import ROOT

PAGE = ROOT / "docs" / "kafka-log-source.md"


def test_the_tables_are_up_to_date() -> None:
    page = PAGE.read_text()
    assert with_our_tables(page) == page
    assert all(f"`{option.name}`" in page for option in SOURCE_OPTIONS)


def test_options_in_examples_exist() -> None:
    found = 0
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        ast.parse(code)
        for name, value in re.findall(r'\.option\("(\w+)", ("?[\w-]+"?)\)', code):
            parse_options(SOURCE_OPTIONS, {name: value.strip('"').replace("_", "")})
            found += 1
    assert found == 2


def test_links_lead_somewhere() -> None:
    for page in (PAGE, ROOT / "docs" / "how-to" / "convert.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), link
