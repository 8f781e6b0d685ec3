"""docs/metrics.md is what the metrics say."""

from __future__ import annotations

import re
from pathlib import Path

from mqlake.cli.metrics_reference import page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_metrics_say() -> None:
    text = (DOCS / "metrics.md").read_text()
    assert text == page(), "python -m mqlake.cli.metrics_reference > docs/metrics.md"


def test_no_table_lists_a_metric_twice() -> None:
    tables = page().split("\n### ")[1:]
    listed = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in tables]
    assert any("mqlake_grpc_calls_total" in names for names in listed)
    assert [names for names in listed if len(names) != len(set(names))] == []
