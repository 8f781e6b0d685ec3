"""Each metric of a broker has a sample."""

from __future__ import annotations

from pathlib import Path

from mqlake.broker.metrics import connections, delivery, observed_broker, pops, replication, traffic
from mqlake.broker.metrics.reference import GROUPS, metrics_of
from mqlake.remoting.metrics import calls, requests
from tests import simulated
from tests.broker.metrics.scraping import sample_name, scrape, use
from tests.broker.running import running

NOTHING = (
    *(connections.PRODUCERS, requests.REFUSED, traffic.SENT_BACK, traffic.TO_DLQ),
    *(traffic.SIZE, traffic.TOPIC_CREATION, traffic.GROUP_CREATION),
    *(delivery.COMMITTED, delivery.ROLLED_BACK, delivery.DURATION, delivery.TIMING),
    *(delivery.ENTERED, delivery.DELIVERED, delivery.DELAYS),
    *(pops.PUT, pops.READ, pops.RETRIED, pops.REVIVE_LAG, pops.REVIVE_LATENCY),
    *(
        replication.SLAVE_BEHIND,
        replication.FOLLOWS,
        observed_broker.RECOVERED,
        observed_broker.TO_RECOVER,
    ),
    *(calls.CALLS, calls.CONNECTIONS, calls.CLIENTS, calls.SLOW_CALLS),
)
"""Metrics of what does not happen here; other tests have their samples."""


def test_each_metric_has_a_sample(tmp_path: Path) -> None:
    """Those of what does not happen here are left out."""

    async def check() -> None:
        async with running(tmp_path, metricsExporterType="PROM") as broker:
            consumer = await use(broker)
            parts = ("_bucket", "_sum")
            found = {name for name, _ in await scrape(broker) if not name.endswith(parts)}
            modules = [module for _, of_group in GROUPS for module in of_group]
            known = {sample_name(metric) for module in modules for metric in metrics_of(module)}
            nothing = {sample_name(metric) for metric in NOTHING}
            assert found == known - nothing
            await consumer.close()

    simulated.run(check())
