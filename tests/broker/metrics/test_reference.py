"""docs/metrics.md is what the broker's metrics say, and each of them has a sample."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.broker.metrics import connections, lag, pages, storage, traffic
from mqlake.broker.metrics.reference import metrics_of, page
from mqlake.metrics.metric import Kind, Metric
from tests.broker.metrics.scraping import scrape, use
from tests.broker.running import running

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_what_the_metrics_say() -> None:
    text = (DOCS / "metrics.md").read_text()
    assert text == page(), "python -m mqlake.broker.metrics.reference > docs/metrics.md"


def sample_name(metric: Metric) -> str:
    """Return the name of one of its samples."""
    ending = "_count" if metric.kind is Kind.HISTOGRAM else ""
    return f"{metric.prometheus_name}{ending}"


def test_each_metric_has_a_sample(tmp_path: Path) -> None:
    """Those of what does not happen here are left out."""

    async def check() -> None:
        async with running(tmp_path, metricsExporterType="PROM") as broker:
            consumer = await use(broker)
            parts = ("_bucket", "_sum")
            found = {name for name, _ in await scrape(broker) if not name.endswith(parts)}
            known = {
                sample_name(metric)
                for module in (connections, lag, pages, storage, traffic)
                for metric in metrics_of(module)
            }
            nothing = {
                sample_name(connections.PRODUCERS),
                sample_name(connections.REFUSED),
                sample_name(traffic.SENT_BACK),
            }
            assert found == known - nothing
            await consumer.close()

    asyncio.run(check())
