"""What a name server tells monitoring systems."""

from __future__ import annotations

from http import HTTPStatus

from prometheus_client.parser import text_string_to_metric_families

from mqlake.broker.metrics.reference import metrics_of
from mqlake.cli.metrics_reference import NAME_SERVER
from mqlake.metrics.metric import MetricType
from mqlake.namesrv.metrics import ObservedNameServer
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import make_namesrv_settings
from mqlake.protocol.codes import RequestCode
from mqlake.remoting.metrics.requests import REFUSED
from tests import simulated
from tests.broker.metrics.scraping import get_of, of
from tests.namesrv.asking import Asking, running


async def scrape(asking: Asking) -> dict[object, float]:
    observed = ObservedNameServer(asking.server.settings, "h:9876", lambda: asking.server)
    page = await get_of(observed, "/metrics")
    common = {("node_type", "namesrv"), ("node_id", "h:9876")}
    found: dict[object, float] = {}
    for family in text_string_to_metric_families(page.body.decode()):
        for sample in family.samples:
            assert common <= sample.labels.items()
            found[of(sample.name, **dict(sample.labels.items() - common))] = sample.value
    return found


def test_brokers_and_topics_are_counted() -> None:
    async def check() -> None:
        async with running(metricsExporterType="PROM") as asking:
            await asking.register()
            await asking.register(broker_name="b", broker_id=1, broker_addr="h:3")
            asking.clock.now += 5000
            found = await scrape(asking)
            assert found[of("mqlake_namesrv_brokers", broker_cluster="c", role="master")] == 1
            assert found[of("mqlake_namesrv_brokers", broker_cluster="c", role="slave")] == 1
            assert found[of("mqlake_namesrv_names_without_master", broker_cluster="c")] == 1
            assert found[of("mqlake_namesrv_topics")] == 3
            assert found[of("mqlake_namesrv_oldest_heartbeat_seconds")] == 5
            assert found[of("mqlake_requests_total", request_code="register_broker")] == 2
            assert found[of("mqlake_connections")] == 1

    simulated.run(check())


def test_each_metric_has_a_sample() -> None:
    async def check() -> None:
        async with running(metricsExporterType="PROM") as asking:
            await asking.register()
            await asking.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
            found = {str(name) for name, _ in await scrape(asking)}  # type: ignore[misc]
            wanted = {
                metric.prometheus_name + ("_count" if metric.kind is MetricType.HISTOGRAM else "")
                for _, modules in NAME_SERVER
                for module in modules
                for metric in metrics_of(module)
                if metric is not REFUSED
            }
            assert wanted <= found

    simulated.run(check())


def test_it_is_not_ready_while_it_waits_for_brokers() -> None:
    async def check() -> None:
        settings = make_namesrv_settings({})
        observed = ObservedNameServer(settings, "h:9876", lambda: None)
        assert (await get_of(observed, "/readyz")).status is HTTPStatus.SERVICE_UNAVAILABLE
        async with running(needWaitForService="true", waitSecondsForService="10") as asking:
            observed = ObservedNameServer(settings, "h:9876", lambda: asking.server)
            page = await get_of(observed, "/readyz")
            assert b"waitSecondsForService" in page.body
            asking.clock.now += 10_000
            assert (await get_of(observed, "/readyz")).status is HTTPStatus.OK

    simulated.run(check())


def test_nothing_is_measured_if_nobody_asks() -> None:
    async def check() -> None:
        async with running() as asking:
            assert asking.server.latencies is None

    simulated.run(check())
    assert NameServer({"slowRequestMillis": 5}).latencies is not None
