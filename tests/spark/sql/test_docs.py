"""The pages say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from mqlake.spark.functions import reference
from mqlake.spark.options.reference import with_tables
from tests.spark.servers import ROOT

PAGES = [ROOT / "docs" / name for name in ("spark-sql.md", "typed-bodies.md")]


def test_the_table_of_functions_is_up_to_date() -> None:
    page = PAGES[0].read_text()
    assert with_tables(page, reference.tables()) == page
    assert reference.tables()["functions"] in page


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        links = re.findall(r"\]\(([^)#]+)[)#]", page.read_text())
        assert links
        for link in links:
            assert (page.parent / Path(link)).exists(), link


def test_python_in_examples_is_python() -> None:
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        assert blocks
        for code in blocks:
            compile(code, str(page), "exec")
