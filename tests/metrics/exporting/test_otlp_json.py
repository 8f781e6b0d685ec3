"""Numbers in OTLP's JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics

from mqlake.metrics.exporting.otlp_json import lines
from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import Sample
from tests.metrics.exporting.samples import SIZE, TIME


@pytest.mark.parametrize("value", [7.5, math.inf, -math.inf, math.nan])
def test_protobuf_reads_each_number(value: float) -> None:
    times = Histogram((1.0,))
    times.add(value)
    samples = [Sample(SIZE, value), Sample(TIME, times, ("T",))]
    found: list[Any] = []
    for line in lines(samples, {}, "m", begin=0, now=1, is_delta=False):
        assert json.loads(line)
        read = json_format.Parse(line, ResourceMetrics())
        found.append(read.scope_metrics[0].metrics[0])
    numbers = found[0].gauge.data_points[0].as_double, found[1].histogram.data_points[0].sum
    assert all(repr(number) == repr(value) for number in numbers)
