"""Avro bodies and a registry inside of a real Spark session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mqlake.errors import FormatError
from mqlake.spark.bodies.frame import decode
from tests.spark.bodies.registry import running
from tests.spark.bodies.test_avro import encoded, framed, record
from tests.spark.bodies.test_spark import frame_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

pytest.importorskip("fastavro", reason="Avro needs fastavro: pip install 'mqlake[avro]'")


def test_avro_from_a_registry(spark: SparkSession) -> None:
    old, new = record(("a", "int")), record(("a", "int"), ("b", ["null", "string"]))
    schemas: dict[int, dict[str, object]] = {
        1: {"schema": json.dumps(old)},
        2: {"schema": json.dumps(new)},
    }
    bodies = [framed(1, encoded(old, {"a": 1})), framed(2, encoded(new, {"a": 2, "b": "x"})), b"\1"]
    with running(schemas, {"T-value": 2}) as server:
        frame = frame_of(spark, *bodies)
        found = rows_of(decode(frame, "avro", registry=server.url, subject="T-value"))
        with pytest.raises(FormatError, match="subject U-value does not exist"):
            decode(frame, "avro", registry=server.url, subject="U-value")
    assert found == [({"a": 1, "b": None}, None), ({"a": 2, "b": "x"}, None), (None, b"\1")]


def test_avro_by_a_schema(spark: SparkSession) -> None:
    schema = record(("a", "int"))
    frame = frame_of(spark, encoded(schema, {"a": 1}))
    assert rows_of(decode(frame, "avro", schema=json.dumps(schema))) == [({"a": 1}, None)]
    wider = json.dumps(record(("a", "long"), ("b", "int", 5)))
    found = rows_of(decode(frame, "avro", schema=wider, writer_schema=json.dumps(schema)))
    assert found == [({"a": 1, "b": 5}, None)]
    with pytest.raises(FormatError, match="Avro bodies need schema, or registry and subject"):
        decode(frame, "avro")
