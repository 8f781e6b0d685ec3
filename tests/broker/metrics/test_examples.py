"""The alert rules and the board name metrics and labels that programs have."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.metrics.reference import GROUPS, metrics_of
from mqlake.cli.metrics_reference import CLIENT, FOLLOW, NAME_SERVER, REPLICA, SPARK
from mqlake.metrics.metric import MetricFamily, MetricType
from tests.broker.metrics.scraping import sample_name

EXAMPLES = Path(__file__).parents[3] / "examples" / "monitoring"
PREFIXES = (
    "rocketmq",
    "mqlake_namesrv",
    "mqlake_replica",
    "mqlake_follow",
    "mqlake_client",
    "mqlake_spark",
)
COMMON = {"node_id", "node_type", "job", "instance"}
"""Labels of all samples, as Prometheus has them."""


def of(groups: Collection[tuple[str, Collection[Any]]]) -> list[MetricFamily]:
    """Return the metrics of a program."""
    return [metric for _, modules in groups for each in modules for metric in metrics_of(each)]


def known() -> dict[str, set[str]]:
    """Return the labels of each name."""
    found: dict[str, set[str]] = {}
    for metric in of((*NAME_SERVER, *REPLICA, *FOLLOW, *CLIENT, *SPARK)):
        found[sample_name(metric)] = COMMON | set(metric.labels)
    for metric in of(GROUPS):
        found[sample_name(metric)] = COMMON | {"cluster", *metric.labels}
    for metric in of((*GROUPS, *NAME_SERVER, *REPLICA, *CLIENT, *SPARK)):
        if metric.kind is MetricType.HISTOGRAM:
            found[f"{metric.prometheus_name}_bucket"] = COMMON | {"le", *metric.labels}
    return found


KNOWN = known()


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


@pytest.mark.parametrize("prefix", PREFIXES)
def test_each_program_has_a_panel(prefix: str) -> None:
    board = (EXAMPLES / "board.json").read_text()
    assert f"{prefix}_" in board


def test_panels_do_not_overlap() -> None:
    panels = json.loads((EXAMPLES / "board.json").read_text())["panels"]
    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels]
    assert len(set(places)) == len({each["id"] for each in panels}) == len(panels)
