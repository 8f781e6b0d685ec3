"""The page says what the code does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mqlake.query.reading.parsing import parse_options
from mqlake.query.store.option_table import SOURCE_OPTIONS
from tests.spark.servers import ROOT

PAGE = ROOT / "docs" / "union-read.md"


def test_options_of_the_page_exist() -> None:
    text = PAGE.read_text()
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        ast.parse(code)
    found = re.findall(r'\.option\("(\w+)", "([^"]+)"\)', text)
    found += re.findall(r"(\w+) '([^']+)'", text)
    assert len(found) >= 6
    for name, value in found:
        parse_options(SOURCE_OPTIONS, {name: value})


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text()):
        assert (PAGE.parent / Path(link)).exists(), link
