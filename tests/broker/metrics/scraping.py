"""What a broker's pages for monitoring say."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from mqlake.broker.broker import Broker
from mqlake.broker.metrics.observed_broker import ObservedBroker
from mqlake.broker.settings import make_broker_settings
from mqlake.metrics.endpoint import HttpResponse
from mqlake.metrics.metric import MetricFamily, MetricType
from mqlake.metrics.observed import Collector, Observed
from mqlake.metrics.pages import ProgramPages
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from tests.broker.consuming import Consumer, subscription
from tests.broker.pull.pulls import GROUP, pull
from tests.broker.running import Running, to

TOPIC = "Orders"
SENT = 5
READER = {"consumer_group": GROUP, "topic": TOPIC, "is_retry": "false", "is_system": "false"}
BODY = b"hello"


async def get(broker: Broker | None, path: str) -> HttpResponse:
    settings = broker.settings if broker else make_broker_settings({})
    return await get_of(ObservedBroker(settings, lambda: broker), path)


async def get_of(observed: Observed, path: str) -> HttpResponse:
    """Return a page of a program."""
    collector = Collector(observed)
    try:
        return await ProgramPages(collector).by_path()[path]()
    finally:
        collector.stop()


Key = tuple[str, frozenset[tuple[str, str]]]


def of(name: str, **labels: str) -> Key:
    """Return the key of a sample in what `scrape` returns."""
    return name, frozenset(labels.items())


def sample_name(metric: MetricFamily) -> str:
    """Return the name of one of a metric's samples."""
    ending = "_count" if metric.kind is MetricType.HISTOGRAM else ""
    return f"{metric.prometheus_name}{ending}"


async def scrape(broker: Running) -> dict[Key, float]:
    """Return all samples, by their names and own labels."""
    text = (await get(broker.broker, "/metrics")).body.decode()
    common = ObservedBroker(broker.broker.settings, lambda: None).labels.items()
    found: dict[Key, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert common <= sample.labels.items()
            found[of(sample.name, **dict(sample.labels.items() - common))] = sample.value
    return found


async def use(broker: Running) -> Consumer:
    """Send messages, pull all of them, and commit some; return the consumer."""
    broker.state.topics.make(TOPIC, 1)
    for _ in range(SENT):
        await broker.send(to(TOPIC), BODY)
    assert len(broker.records(TOPIC)) == SENT
    consumer = Consumer(broker)
    await consumer.beat(GROUP, subscription(TOPIC))
    assert len((await pull(consumer, commit_offset=0)).records) == SENT
    commit = UpdateConsumerOffsetHeader(
        consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=2
    )
    await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    return consumer
