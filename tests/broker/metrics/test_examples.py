"""The alert rules and the board name metrics and labels that a broker has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.broker.metrics.reference import all_metrics
from mqlake.metrics.metric import MetricType
from tests.broker.metrics.scraping import sample_name

EXAMPLES = Path(__file__).parents[3] / "examples" / "monitoring"
COMMON = {"node_id", "cluster", "node_type"}
KNOWN = {sample_name(metric): COMMON | set(metric.labels) for metric in all_metrics()}
KNOWN |= {
    f"{metric.prometheus_name}_bucket": COMMON | {"le", *metric.labels}
    for metric in all_metrics()
    if metric.kind is MetricType.HISTOGRAM
}


def expressions() -> Iterator[str]:
    board = json.loads((EXAMPLES / "board.json").read_text())
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    rules = (EXAMPLES / "alerts.yml").read_text()
    yield from re.findall(r"^ +expr: (.*)$", rules, re.MULTILINE)


@pytest.mark.parametrize("expression", sorted(expressions()))
def test_each_name_exists(expression: str) -> None:
    names = re.findall(r"\b(?:rocketmq|mqlake)_\w+", expression)
    assert names or expression.startswith("up{")
    assert set(names) <= KNOWN.keys()
    by = re.findall(r"by \((.*?)\)", expression)
    matched = re.findall(r"(\w+)=\"", expression)
    labels = {label.strip() for part in by for label in part.split(",")} | set(matched)
    for name in names:
        assert labels <= KNOWN[name]


def test_the_page_for_operators_explains_each_alert() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "operations.md").read_text()
    _, _, section = page.partition("## What each alert means")
    explained = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    rules = (EXAMPLES / "alerts.yml").read_text()
    assert explained == re.findall(r"- alert: (\w+)", rules)
