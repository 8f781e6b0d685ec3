"""Samples in Prometheus's text format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from mqlake.metrics.exposition import encode
from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import MetricFamily, MetricType, Sample, counter, gauge, histogram


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (gauge("rocketmq_storage_size", "", "bytes"), "rocketmq_storage_size_bytes"),
        (gauge("rocketmq_behind_bytes", "", "bytes"), "rocketmq_behind_bytes"),
        (gauge("rocketmq_topic_number", ""), "rocketmq_topic_number"),
        (counter("rocketmq_messages_in_total", ""), "rocketmq_messages_in_total"),
        (counter("waited_total", "", "seconds"), "waited_seconds_total"),
    ],
)
def test_the_name_ends_with_the_unit_and_total(metric: MetricFamily, name: str) -> None:
    assert metric.prometheus_name == name
    lines = encode([Sample(metric, 1)], {}).decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [f"{name} 1.0"]


@given(
    st.sampled_from([MetricType.GAUGE, MetricType.COUNTER]),
    st.dictionaries(
        st.tuples(st.text(), st.text()), st.floats(0, 1e15, allow_nan=False), max_size=5
    ),
    st.text(),
)
def test_every_label_and_value_is_read_back(
    kind: MetricType, values: dict[tuple[str, str], float], cluster: str
) -> None:
    metric = MetricFamily("m", kind, "Help \\ with\nlines.", labels=("topic", "group"))
    samples = [Sample(metric, value, labels) for labels, value in values.items()]
    text = encode(samples, {"cluster": cluster}).decode()
    found = {
        (sample.labels["topic"], sample.labels["group"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels["cluster"] == cluster
    }
    assert found == values


@given(
    st.lists(st.floats(0, 1e9), min_size=1, max_size=8, unique=True),
    st.lists(st.tuples(st.floats(0, 1e10), st.integers(1, 1000)), max_size=30),
    st.text(),
)
def test_a_histogram_has_the_number_of_values_within_each_bound(
    bounds: list[float], values: list[tuple[float, int]], topic: str
) -> None:
    bounds.sort()
    found = Histogram(bounds)
    for value, count in values:
        found.add(value, count)
    metric = histogram("rpc_latency", "Help.", "milliseconds", ("topic",))
    text = encode([Sample(metric, found.copy(), (topic,))], {"cluster": "c"}).decode()
    (family,) = text_string_to_metric_families(text)
    read = {
        (sample.name.removeprefix("rpc_latency_milliseconds"), sample.labels.get("le")): sample
        for sample in family.samples
    }
    for bound in bounds:
        within = sum(count for value, count in values if value <= bound)
        assert read["_bucket", repr(bound)].value == within
    every = sum(count for _, count in values)
    assert read["_bucket", "+Inf"].value == read["_count", None].value == every == found.count
    assert read["_sum", None].value == found.total
    assert all(sample.labels["topic"] == topic for sample in read.values())
