"""The options of one write to a running cluster (docs/spark-live.md has this table)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mqlake.client.access import ClientAccess
from mqlake.client.producer.producer import DEFAULT_GROUP
from mqlake.errors import FormatError
from mqlake.protocol.naming import group_fault
from mqlake.query.live.option_table import ACCESS_OPTIONS, NAME_SERVER, RETRY_TIMEOUT
from mqlake.query.live.options import access_of, check_known, with_name_server
from mqlake.query.reading.parsing import Option, parse_options, text
from mqlake.spark.sink.option_table import SINK_OPTIONS

_OF_DIRECTORIES = {option.name: option for option in SINK_OPTIONS}

LIVE_SINK_OPTIONS: tuple[Option, ...] = (
    NAME_SERVER,
    *ACCESS_OPTIONS,
    _OF_DIRECTORIES["topic"],
    Option("producerGroup", text, DEFAULT_GROUP, "both", "The group of the producers."),
    RETRY_TIMEOUT,
    Option("checkpointLocation", text, None, "streaming", "Spark's own option."),
)


class LiveWriteOptions(msgspec.Struct, frozen=True):
    """The target of the messages, and how it is reached; `retry_timeout` is in milliseconds."""

    name_servers: str
    access: ClientAccess
    topic: str | None
    group: str
    retry_timeout: int


def live_write_options(given: Mapping[str, str]) -> LiveWriteOptions:
    """Read the options of a write.

    Raises:
        FormatError: an unknown option or value.
    """
    check_known(given, LIVE_SINK_OPTIONS, SINK_OPTIONS)
    values = parse_options(LIVE_SINK_OPTIONS, with_name_server(given))
    if fault := group_fault(values["producerGroup"]):
        raise FormatError(f"option producerGroup: {fault}")
    return LiveWriteOptions(
        values["nameServer"],
        access_of(values),
        values["topic"],
        values["producerGroup"],
        values["retryTimeout"],
    )
