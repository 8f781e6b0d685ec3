"""Typed bodies inside of a real Spark session."""

from __future__ import annotations

import json
import zlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlake.errors import FormatError, JobError
from mqlake.formats.sys_flag import COMPRESSED, COMPRESSION_LZ4, COMPRESSION_ZLIB
from mqlake.spark.bodies import compressed
from mqlake.spark.bodies.frame import decode
from tests.spark.bodies.test_protobuf import RECIPE, order
from tests.store.make_store import START, StoreMaker, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

Properties = dict[str, str] | None


def frame_of(spark: SparkSession, *bodies: bytes | None, properties: Any = None) -> DataFrame:
    given = properties or [{}] * len(bodies)
    rows = [
        (number, None if body is None else bytearray(body), given[number])
        for number, body in enumerate(bodies)
    ]
    columns = "queueOffset int, body binary, properties map<string,string>"
    return spark.createDataFrame(rows, columns).coalesce(1)


def rows_of(frame: DataFrame) -> list[tuple[Any, bytes | None]]:
    """Return the decoded values as dictionaries, and the bodies that were malformed."""
    found = frame.orderBy("queueOffset").select("decoded", "_corrupt").collect()
    return [
        (
            None if row.decoded is None else row.decoded.asDict(recursive=True),
            None if row["_corrupt"] is None else bytes(row["_corrupt"]),
        )
        for row in found
    ]


JSON_CASES: dict[bytes | None, tuple[Any, bool]] = {
    b'{"id": 1, "price": 2.5}': ((1, 2.5), True),
    b'{"id": 1, "new": 3}': ((1, None), True),
    b"{}": ((None, None), True),
    b'{"id": "x", "price": 1.5}': ((None, 1.5), False),
    b'{"id": 99999999999999999999, "price": 1}': ((None, 1.0), False),
    b"{broken": ((None, None), False),
    b"[1]": ((None, None), False),
    b"\xff\xfe": ((None, None), False),
    b"": (None, True),
    None: (None, True),
}
"""Bodies; the columns id and price, None for no struct; whether they are well-formed."""


def test_json_by_a_schema(spark: SparkSession) -> None:
    frame = decode(frame_of(spark, *JSON_CASES), "json", schema="id bigint, price double")
    assert rows_of(frame) == [
        (
            None if values is None else dict(zip(("id", "price"), values, strict=True)),
            None if is_good else body,
        )
        for body, (values, is_good) in JSON_CASES.items()
    ]


def test_a_schema_is_inferred_from_a_sample(spark: SparkSession) -> None:
    bodies = [b'{"id": 1}', b"{broken", b'{"id": 2, "at": {"lat": 1.5}}', b'{"a": 1, "a": 2}']
    frame = decode(frame_of(spark, *bodies), "json")
    assert frame.schema["decoded"].dataType.simpleString() == (
        "struct<at:struct<lat:double>,id:bigint>"
    )
    few = decode(frame_of(spark, *bodies), "json", sample_size=1)
    assert few.schema["decoded"].dataType.simpleString() == "struct<id:bigint>"
    with pytest.raises(FormatError, match="none of the first 1 bodies is a JSON object"):
        decode(frame_of(spark, b"[1]"), "json")


def test_failfast_says_which_message_it_was(spark: SparkSession) -> None:
    frame = frame_of(spark, b'{"id": 1}', b'{"id": "x"}')
    with pytest.raises(Exception, match="queueOffset 1, malformed body: the body is not JSON"):
        decode(frame, "json", schema="id int", mode="FAILFAST").collect()
    only_good = decode(frame, "json", schema="id int", mode="failfast").where("queueOffset = 0")
    assert [row.decoded.id for row in only_good.collect()] == [1]


ATTRIBUTES = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "order"}
IN_PROPERTIES = {f"CE_{name}": text for name, text in ATTRIBUTES.items()}


def structured(**fields: Any) -> bytes:
    return json.dumps(ATTRIBUTES | fields).encode()


def test_cloud_events_of_both_modes(spark: SparkSession) -> None:
    binary = IN_PROPERTIES | {
        "CE_time": "2026-01-02T03:04:05.5+02:00",
        "CE_contenttype": "application/json",
        "CE_region": "eu",
        "KEYS": "k",
    }
    messages: list[tuple[bytes | None, Properties]] = [
        (structured(data={"id": 5}, time="2026-01-02T03:04:05Z", region="eu"), {}),
        (b'{"id": 6}', binary),
        (b"\0", IN_PROPERTIES),
        (
            structured(data_base64="eyJpZCI6OH0="),
            {"CE_contenttype": "application/cloudevents+json"},
        ),
        (b'{"specversion": "1.0", "id": "1"}', {}),
        (structured(data_base64="!"), {}),
        (b"text", {}),
        (b"text", {"CE_specversion": "1.0"}),
        (structured(data="text"), {}),
        (None, {}),
    ]
    bodies, properties = zip(*messages, strict=True)
    frame = frame_of(spark, *bodies, properties=properties)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        found = rows_of(decode(frame, "cloudevents", schema="id int"))
    finally:
        spark.conf.unset("spark.sql.session.timeZone")

    plain = {**ATTRIBUTES, "subject": None, "datacontenttype": None, "dataschema": None}
    plain |= {"time": None, "extensions": {}, "data": None}
    times = [row.pop("time") if row else None for row, _ in found[:2]]
    assert [time.astimezone().timestamp() for time in times] == [
        datetime.fromisoformat(text).timestamp()
        for text in ("2026-01-02T03:04:05+00:00", binary["CE_time"])
    ]
    expected = plain | {"extensions": {"region": "eu"}, "data": {"id": 5}}
    del expected["time"]
    assert found[0] == (expected, None)
    expected |= {"data": {"id": 6}, "datacontenttype": "application/json"}
    assert found[1] == (expected, None)
    assert found[2] == (plain, None)
    assert found[3][0]["data"] == {"id": 8}
    assert [corrupt for _, corrupt in found] == [
        *[None] * 4,
        *bodies[4:9],
        None,
    ]
    raw = rows_of(decode(frame, "cloudevents"))
    assert raw[8] == (plain | {"data": b"text"}, None)


def test_cloud_events_in_headers_of_kafka(spark: SparkSession) -> None:
    headers = [("content-type", bytearray(b"application/json"))]
    headers += [(f"ce_{name}", bytearray(text.encode())) for name, text in ATTRIBUTES.items()]
    headers += [("ce_id", bytearray(b"8"))]
    frame = spark.createDataFrame(
        [(0, bytearray(b'{"id": 6}'), headers), (1, bytearray(structured(data={"id": 5})), None)],
        "queueOffset int, value binary, headers array<struct<key:string,value:binary>>",
    )
    found = rows_of(decode(frame, "cloudevents", schema="id int"))
    assert [(row["id"], row["data"], corrupt) for row, corrupt in found] == [
        ("8", {"id": 6}, None),
        ("7", {"id": 5}, None),
    ]


def test_protobuf(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "shop.desc"
    file.write_bytes(RECIPE.descriptors)
    frame = frame_of(spark, order(id=3, note="é"), b"\xff", None)
    made = decode(frame, "protobuf", schema=file, message="shop.Order")
    found = rows_of(made)
    assert (found[0][0]["id"], found[0][0]["note"]) == (3, "é")
    assert found[1:] == [(None, b"\xff"), (None, None)]
    assert made.select("decoded.id").orderBy("queueOffset").collect()[0].id == 3


def test_compressed_bodies(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "store"
    maker = StoreMaker(segment_size=4096)
    plain = b'{"id": 1}'
    bodies = [
        (plain, 0),
        (zlib.compress(plain), COMPRESSED),
        (zlib.compress(plain), COMPRESSED | COMPRESSION_ZLIB),
        (plain, COMPRESSED | COMPRESSION_ZLIB),
    ]
    for number, (body, flag) in enumerate(bodies):
        maker.sys_flag = flag
        maker.append(topic="T", queue_id=0, time=START + number, body=body)
    write(maker.files(), path)
    frame = decode(spark.read.format("rocketmq").load(str(path)), "json", schema="id int")
    assert rows_of(frame) == [({"id": 1}, None)] * 3 + [(None, plain)]


def test_the_bodies_of_a_batch_have_bounds() -> None:
    import pyarrow as pa

    body = zlib.compress(bytes(1000))
    flag = COMPRESSED | COMPRESSION_ZLIB
    with pytest.raises(JobError, match=r"of 3 messages have more than 2500 bytes; set spark\.sql"):
        compressed.decompress_all(pa.array([body] * 3), pa.array([flag] * 3), 2500)
    unknown = compressed.decompress_all(pa.array([body]), pa.array([COMPRESSED | 7 << 8]))
    assert unknown.to_pylist()[0]["value"] is None
    lz4 = compressed.decompress_all(pa.array([b"\0"]), pa.array([COMPRESSED | COMPRESSION_LZ4]))
    assert lz4.to_pylist()[0]["fault"]


def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "store"
    maker = StoreMaker(segment_size=4096)
    for number in range(3):
        body = json.dumps({"id": number}).encode()
        maker.append(topic="T", queue_id=0, time=START + number, body=body)
    write(maker.files(), path)
    stream = spark.readStream.format("rocketmq").option("startingOffsets", "earliest")
    frame = stream.load(str(path))
    with pytest.raises(FormatError, match="cannot be inferred from a stream"):
        decode(frame, "json")
    query = (
        decode(frame, "json", schema="id int")
        .select("decoded.*")
        .writeStream.format("memory")
        .queryName("typed")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(row.id for row in spark.table("typed").collect()) == [0, 1, 2]
    spark.catalog.dropTempView("typed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"body": "jsn"}, "body 'jsn' is not one of .*; the nearest is json"),
        ({"body": "json", "mode": "DROPMALFORMED"}, "mode 'DROPMALFORMED' is not one of"),
        ({"body": "json", "schema": "id bigin"}, "schema 'id bigin' is not DDL"),
        ({"body": "json", "schema": "id int, ID int"}, "the column ID occurs twice"),
        ({"body": "json", "schema": "id int", "into": "BODY"}, "already has a column BODY"),
        (
            {"body": "json", "schema": "id int", "column": "x"},
            "no column x; the columns",
        ),
        (
            {"body": "protobuf", "schema": b""},
            "bodies need schema, a descriptor file",
        ),
        ({"body": "cloudevents", "framing": "confluent"}, "framing confluent cannot be used"),
    ],
)
def test_wrong_arguments_are_refused(
    spark: SparkSession, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        decode(frame_of(spark, b"{}"), **arguments)
