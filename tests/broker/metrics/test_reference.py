"""docs/metrics.md is what the broker's metrics say, and each of them has a sample."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.broker.metrics import connections, lag, pages, storage, traffic
from mqlake.broker.metrics.reference import metrics_of, page
from tests.broker.metrics.scraping import scrape, use
from tests.broker.running import running

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_what_the_metrics_say() -> None:
    text = (DOCS / "metrics.md").read_text()
    assert text == page(), "python -m mqlake.broker.metrics.reference > docs/metrics.md"


def test_each_metric_has_a_sample(tmp_path: Path) -> None:
    """Those of what does not happen here are left out."""

    async def check() -> None:
        async with running(tmp_path) as broker:
            consumer = await use(broker)
            found = {name for name, _ in await scrape(broker)}
            known = {
                metric.prometheus_name
                for module in (connections, lag, pages, storage, traffic)
                for metric in metrics_of(module)
            }
            nothing = {
                connections.PRODUCERS.prometheus_name,
                connections.REFUSED.prometheus_name,
                traffic.SENT_BACK.prometheus_name,
            }
            assert found == known - nothing
            await consumer.close()

    asyncio.run(check())
