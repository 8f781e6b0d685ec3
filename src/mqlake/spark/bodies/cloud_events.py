"""CloudEvents 1.0: events as JSON (structured mode), or in properties (binary mode).

Properties are named as in CloudEvents' Java SDK for RocketMQ: `CE_` before the attribute. Headers
of Kafka records begin with `ce_`, as in the Kafka protocol binding.

Upstream: RocketMqMessageFactory of cloudevents-rocketmq.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.spark.bodies import json_bodies
from mqlake.spark.bodies.decoded import DecodedBody

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXTS = ("id", "source", "specversion", "type", "subject", "datacontenttype", "dataschema")
_REQUIRED = ("id", "source", "specversion", "type")
_NOT_EXTENSIONS = (*_TEXTS, "time", "data", "data_base64", "contenttype")
_OF_ROCKETMQ = "CE_"
_OF_KAFKA = "ce_"


def decoded(
    frame: DataFrame, body: Column, schema: str | None, framed: bool, sample_size: int
) -> DecodedBody:
    """Return the events of messages; their data has columns if `schema` is given.

    The struct has the attributes, `time` as a timestamp, `extensions` (a map), and `data`: binary,
    or a struct if there is a schema and the content is JSON.
    """
    from pyspark.sql import functions as sql

    del sample_size
    if framed:
        raise FormatError(
            "framing confluent cannot be used with CloudEvents, which name their schemas themselves"
        )
    properties, prefix = _properties(frame)
    is_binary = sql.coalesce(
        properties[prefix + "specversion"].isNotNull() & ~_is_structured(properties, prefix),
        sql.lit(False),
    )
    text = body.cast("string")
    whole = sql.when(~is_binary, sql.from_json(text, "map<string,string>"))
    attributes = sql.when(is_binary, _attributes(properties, prefix)).otherwise(whole)
    content = _content(body, is_binary, whole)

    fault = sql.when(
        body.isNotNull() & (attributes.isNull() | ~_all_present(attributes)),
        sql.lit(
            "the body is not a CloudEvent: one of the attributes id, source, specversion and "
            "type is missing"
        ),
    )
    not_base64 = whole["data_base64"].isNotNull() & content.isNull()
    fault = sql.coalesce(fault, sql.when(not_base64, sql.lit("data_base64 is not base64")))
    data = content
    if schema is not None:
        data, wrong = json_bodies.parsed(content, schema)
        fault = sql.coalesce(fault, wrong)
    fields = [attributes[name].alias(name) for name in _TEXTS]
    time = sql.try_to_timestamp(attributes["time"]).alias("time")
    extensions = sql.map_filter(attributes, lambda key, _: ~key.isin(*_NOT_EXTENSIONS))
    event = sql.struct(*fields, time, extensions.alias("extensions"), data.alias("data"))
    return DecodedBody(sql.when(_all_present(attributes), event), fault)


def _properties(frame: DataFrame) -> tuple[Column, str]:
    """Return the map of a message's properties, and the prefix of attributes there."""
    from pyspark.sql import functions as sql

    if "properties" in frame.columns:
        return sql.col("properties"), _OF_ROCKETMQ
    if "headers" not in frame.columns:
        return sql.lit(None).cast("map<string,string>"), _OF_ROCKETMQ
    # A key may occur several times, which a map does not allow: the last value counts.
    pairs = sql.transform(
        sql.col("headers"),
        lambda one: sql.struct(one["key"].alias("key"), one["value"].cast("string").alias("value")),
    )
    return (
        sql.aggregate(
            pairs,
            sql.lit(None).cast("map<string,string>"),
            lambda found, one: sql.map_concat(
                sql.map_filter(
                    sql.coalesce(found, sql.create_map().cast("map<string,string>")),
                    lambda key, _: key != one["key"],
                ),
                sql.create_map(one["key"], one["value"]),
            ),
        ),
        _OF_KAFKA,
    )


def _content_type(properties: Column, prefix: str) -> Column:
    from pyspark.sql import functions as sql

    return sql.coalesce(
        properties[prefix + "contenttype"],
        properties[prefix + "datacontenttype"],
        properties["content-type"],
    )


def _is_structured(properties: Column, prefix: str) -> Column:
    from pyspark.sql import functions as sql

    content_type = sql.lower(_content_type(properties, prefix))
    return sql.coalesce(content_type.startswith("application/cloudevents"), sql.lit(False))


def _attributes(properties: Column, prefix: str) -> Column:
    from pyspark.sql import functions as sql

    ours = sql.map_filter(properties, lambda key, _: key.startswith(prefix))
    names = sql.transform_keys(ours, lambda key, _: sql.substr(key, sql.lit(len(prefix) + 1)))
    content_type = sql.create_map(sql.lit("datacontenttype"), _content_type(properties, prefix))
    others = sql.map_filter(names, lambda key, _: key != "datacontenttype")
    return sql.map_concat(others, content_type)


def _content(body: Column, is_binary: Column, whole: Column) -> Column:
    """Return an event's data as binary. The Java SDK sends one NUL byte for none."""
    from pyspark.sql import functions as sql

    own = sql.when((sql.length(body) > 0) & (body != sql.lit(b"\0")), body)
    inside = sql.when(
        whole["data_base64"].isNotNull(), sql.try_to_binary(whole["data_base64"], sql.lit("base64"))
    ).otherwise(sql.encode(whole["data"], "utf-8"))
    return sql.when(is_binary, own).otherwise(inside)


def _all_present(attributes: Column) -> Column:
    from pyspark.sql import functions as sql

    found = sql.lit(True)
    for name in _REQUIRED:
        found = found & attributes[name].isNotNull()
    return sql.coalesce(found, sql.lit(False))
