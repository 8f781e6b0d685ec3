"""A real Prometheus finds a series for every query of the board and of the alert rules."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from mqlake.broker.settings import make_broker_settings
from mqlake.client.cluster import Cluster
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.metrics import ClientMetrics
from mqlake.client.producer.statistics import SendStatistics
from mqlake.metrics.exporting.options import ServedPages
from mqlake.metrics.metric import Sample
from mqlake.metrics.observed import Observed
from mqlake.metrics.publishing import publish
from mqlake.namesrv.metrics import ObservedNameServer
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import make_namesrv_settings
from mqlake.programs.broker import BrokerProgram
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.protocol.headers.send import SendBackHeader
from mqlake.replica.metrics import ObservedReplica
from mqlake.spark import QueryMetrics
from mqlake.spark.follow.metrics import FollowProgress, ObservedFollower
from mqlake.spark.follow.query import TITLE
from tests.broker.consuming import Consumer, subscription
from tests.broker.metrics.test_examples import EXAMPLES, expressions
from tests.broker.pull.pulls import GROUP, Pulled, polls, pull
from tests.broker.running import SMALL, Running, next_port, to
from tests.client.test_cluster import BODY, BROKER
from tests.peer.prometheus import Prometheus, PrometheusMissingError, program, scraping
from tests.replica.copies import asked, copying
from tests.replication.slaves import Slave, close_all, server
from tests.spark.test_query_metrics import progress
from tests.until import until

pytestmark = pytest.mark.peer

TOPIC = "Orders"
NAMES = {"listenPort": 0, "metricsExporterType": "PROM"}
DELAYED = "UNIQ_KEY\x01AB12\x02TIMER_DELAY_SEC\x013600\x02"
COMPARISON = re.compile(r" (?:==|!=|>|<) [^=<>]*$")
"""What makes an alert of a query."""


@asynccontextmanager
async def serving(path: Path, port: int, **settings: object) -> AsyncIterator[Running]:
    """Run a broker that serves its metrics on a port."""
    chosen = {
        **SMALL,
        "storePathRootDir": str(path),
        "listenPort": next_port(),
        "metricsExporterType": "PROM",
        "metricsPromExporterPort": port,
        **settings,
    }
    async with BrokerProgram(make_broker_settings(chosen), next_port()) as program:
        found = Running(program.broker)
        try:
            yield found
        finally:
            await found.client.close()


async def use(broker: Running) -> tuple[Consumer, asyncio.Task[Pulled]]:
    """Let a broker have a number for everything that is watched."""
    broker.state.topics.make(TOPIC, 1)
    for number in range(3):
        properties = DELAYED if number == 2 else ""
        answer = await broker.send(to(TOPIC, properties=properties))
        assert answer.code == ResponseCode.SUCCESS
    broker.records(TOPIC)
    consumer = Consumer(broker)
    await consumer.beat(GROUP, subscription(TOPIC), producerDataSet=[{"groupName": "producers"}])
    assert (await pull(consumer)).records
    waits = {"sys_flag": HAS_SUBSCRIPTION | MAY_SUSPEND, "suspend_timeout_millis": 60_000}
    waiting = asyncio.create_task(pull(consumer, 2, **waits))
    await until(lambda: len(polls(broker)) == 1)
    refused = await pull(consumer, 2, **waits)  # pullPollingSize allows one to wait.
    assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
    back = SendBackHeader(offset=0, group=GROUP, delay_level=-1)
    assert (await broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back)).code == 0
    slave = await Slave.connect(server(broker).address)
    slave.report(0)
    await until(lambda: len(server(broker).connections) == 1)
    await until(lambda: broker.state.store.timers.waiting == 1)
    return consumer, waiting


class Program:
    """What a producer and a consumer have counted."""

    def __init__(self) -> None:
        self._sent, self._received = SendStatistics(), Statistics(time.monotonic)
        self._sent.sent(TOPIC, 1, 5, 0.1)
        self._sent.retried(TOPIC, 1)
        self._sent.failed(TOPIC, TimeoutError())
        self._received.pulled(TOPIC, 2, 0.1)
        self._received.finished(TOPIC, 0.1)
        self._received.failed(TOPIC)

    def samples(self) -> list[Sample]:
        return [*self._sent.samples("producers", 0), *self._received.samples(GROUP)]


@asynccontextmanager
async def others(path: Path, broker: Running) -> AsyncGenerator[list[int]]:
    """Run the other programs that have metrics; yield the ports of their pages."""
    async with AsyncExitStack() as undo:

        async def serve(observed: Observed) -> int:
            published = await publish(ServedPages("127.0.0.1", 0), observed, undo)
            assert published.port is not None
            return published.port

        server = await undo.enter_async_context(NameServer(make_namesrv_settings(NAMES)))
        address = f"127.0.0.1:{server.port}"
        cluster = await undo.enter_async_context(Cluster(address))
        await cluster.ask(address, RequestCode.REGISTER_BROKER, BROKER, BODY)
        copy = await undo.enter_async_context(copying(asked(broker, path)))
        await until(lambda: copy.progress().lag_bytes is not None and copy.arrivals.count)
        queries = QueryMetrics(None)
        queries.progressed(progress(addBatch=900, triggerExecution=2000))
        queries.terminated(SimpleNamespace(id="7", exception=None))
        table = FollowProgress("store", None)
        table.report(TITLE, 10, 20)
        yield [
            await serve(ObservedNameServer(server.settings, "names", lambda: server)),
            await serve(ObservedReplica(copy)),
            await serve(ObservedFollower([table])),
            await serve(ClientMetrics(Program(), queries)),
        ]


async def has_series(prometheus: Prometheus, expression: str) -> bool:
    return bool(await prometheus.query(COMPARISON.sub("", expression)))


def test_every_query_of_the_board_and_the_alerts_has_a_series(tmp_path: Path) -> None:
    async def check() -> None:
        master_port, slave_port = next_port(), next_port()
        for name in ("master", "slave", "prometheus"):
            (tmp_path / name).mkdir()
        async with (
            AsyncExitStack() as undo,
            serving(tmp_path / "master", master_port, pullPollingSize=1) as broker,
            serving(tmp_path / "slave", slave_port, brokerRole="SLAVE", brokerId=1),
        ):
            try:
                consumer, waiting = await use(broker)
                pages = await undo.enter_async_context(others(tmp_path / "copy", broker))
                prometheus = await undo.enter_async_context(
                    scraping(
                        tmp_path / "prometheus",
                        (master_port, slave_port, *pages),
                        EXAMPLES / "alerts.yml",
                    )
                )
                for expression in sorted(expressions()):
                    await until(lambda asked=expression: has_series(prometheus, asked))
                waiting.cancel()
                await consumer.close()
            finally:
                await close_all()

    try:
        program("prometheus")
    except PrometheusMissingError as reason:
        pytest.skip(str(reason))
    asyncio.run(check())


def test_the_alert_rules_are_valid() -> None:
    try:
        tool = program("promtool")
    except PrometheusMissingError as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        [tool, "check", "rules", str(EXAMPLES / "alerts.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
