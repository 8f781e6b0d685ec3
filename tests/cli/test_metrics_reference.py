"""docs/metrics.md is what the metrics say."""

from __future__ import annotations

from pathlib import Path

from mqlake.cli.metrics_reference import page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_metrics_say() -> None:
    text = (DOCS / "metrics.md").read_text()
    assert text == page(), "python -m mqlake.cli.metrics_reference > docs/metrics.md"
