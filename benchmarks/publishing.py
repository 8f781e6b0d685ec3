"""Publish what was measured: the page of the documentation, and the raw results."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.page import page
from benchmarks.results import Results, joined

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
RAW = Path(__file__).parent / "results.json"


def publish(results: Results) -> None:
    """Write results to the page, with the published sections that were not measured again."""
    old = msgspec.json.decode(RAW.read_bytes(), type=Results) if RAW.exists() else None
    results = joined(old, results)
    PAGE.write_text(page(results))
    RAW.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
