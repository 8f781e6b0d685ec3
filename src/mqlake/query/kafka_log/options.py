"""The options of one query, parsed and checked for contradictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mqlake.errors import FormatError
from mqlake.kafka.isolation import Isolation
from mqlake.query.kafka_log.columns import COLUMNS, check_columns
from mqlake.query.kafka_log.option_table import NO_MEANING, SOURCE_OPTIONS
from mqlake.query.reading.directory import Location
from mqlake.query.reading.limits import (
    EARLIEST,
    LATEST,
    Limit,
    check_limits,
    check_one_strategy,
    check_triggers,
    limit_of,
)
from mqlake.query.reading.parsing import parse_options
from mqlake.storage.object_stores import SETTINGS

TopicPartition = tuple[str, int]


class ReadOptions(msgspec.Struct, frozen=True):
    """The options of a query; names as in `option_table`, None if an option has no value."""

    location: Location
    topics: tuple[str, ...] | None
    topic_pattern: str | None
    partitions: tuple[TopicPartition, ...] | None
    starting: Limit[TopicPartition]
    ending: Limit[TopicPartition]
    latest_if_none: bool
    isolation: Isolation
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay: int
    columns: tuple[str, ...]
    push_filters: str
    ignored: tuple[str, ...]
    """Options that were given but have no effect in this kind of query."""

    @property
    def path(self) -> str:
        """The name of the log directory in messages."""
        return self.location.name


def read_options(given: Mapping[str, str], *, streaming: bool | None = None) -> ReadOptions:
    """Parse the options of a query; without `streaming`, those that both kinds of query share.

    Raises:
        FormatError: an option or value does not exist, or options contradict each other.
    """
    about_brokers = [name for name in given if _is_about_brokers(name)]
    given = {name: text for name, text in given.items() if name not in about_brokers}
    values = parse_options(SOURCE_OPTIONS, given)
    if values["path"] is None:
        raise FormatError("option path is missing: Kafka's log directory (log.dir), or its URL")
    check_one_strategy(values)
    options = ReadOptions(
        location=Location(values["path"], settings=_settings(values)),
        topics=values["subscribe"],
        topic_pattern=values["subscribePattern"],
        partitions=values["assign"],
        starting=limit_of(values, "starting", LATEST if streaming else EARLIEST),
        ending=limit_of(values, "ending", LATEST),
        latest_if_none=values["startingOffsetsByTimestampStrategy"] == LATEST,
        isolation=Isolation(values["isolation.level"]),
        fail_on_data_loss=values["failOnDataLoss"],
        min_partitions=values["minPartitions"],
        max_records_per_partition=values["maxRecordsPerPartition"],
        max_offsets_per_trigger=values["maxOffsetsPerTrigger"],
        min_offsets_per_trigger=values["minOffsetsPerTrigger"],
        max_trigger_delay=values["maxTriggerDelay"],
        columns=_columns(values),
        push_filters=values["pushFilters"],
        ignored=(*about_brokers, *_of_other_queries(given, streaming=bool(streaming))),
    )
    check_triggers(options.min_offsets_per_trigger, options.max_offsets_per_trigger)
    if streaming is not None:
        check_limits(options.starting, options.ending, given, streaming=streaming)
    return options


def _settings(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: values[name] for name in SETTINGS if values[name] is not None}


def _is_about_brokers(name: str) -> bool:
    known = {alias.lower() for option in SOURCE_OPTIONS for alias in option.aliases}
    return name.lower() not in known and name.lower().startswith(NO_MEANING)


def _columns(values: dict[str, Any]) -> tuple[str, ...]:
    if values["columns"]:
        return check_columns(values["columns"])
    return tuple(name for name in COLUMNS if name != "headers" or values["includeHeaders"])


def _of_other_queries(given: Mapping[str, str], *, streaming: bool) -> list[str]:
    other = "batch" if streaming else "streaming"
    names = {option.name.lower() for option in SOURCE_OPTIONS if option.queries == other}
    return [name for name in given if name.lower() in names]
