"""The options of one query, parsed and checked for contradictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mqlake.errors import FormatError
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
from mqlake.query.store.columns import chosen_columns
from mqlake.query.store.option_table import SOURCE_OPTIONS
from mqlake.storage.object_stores import SETTINGS
from mqlake.store.log.scan import Queue


class ReadOptions(msgspec.Struct, frozen=True):
    """The options of a query; names as in `option_table`, None if an option has no value."""

    location: Location
    """A store; its path is "" for the stores that `table` follows."""
    table: str | None
    catalog: str | None
    catalog_name: str
    topics: tuple[str, ...] | None
    topic_pattern: str | None
    queues: tuple[Queue, ...] | None
    tags: tuple[str, ...] | None
    keys: tuple[str, ...] | None
    starting_position: dict[str, Any] | None
    starting: Limit[Queue]
    ending: Limit[Queue]
    latest_if_none: bool
    fail_on_data_loss: bool
    fail_on_subscription_change: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay: int
    columns: tuple[str, ...]
    broker_name: str | None
    access_path: str
    push_filters: str
    ignored: tuple[str, ...]
    """Options that were given but have no effect in this kind of query."""

    @property
    def path(self) -> str:
        """The name of the store in messages."""
        return self.location.name


def read_options(given: Mapping[str, str], *, streaming: bool | None = None) -> ReadOptions:
    """Parse the options of a query; without `streaming`, those that both kinds of query share.

    Raises:
        FormatError: an option or value does not exist, or options contradict each other.
    """
    values = parse_options(SOURCE_OPTIONS, given)
    if values["table"] is not None and streaming:
        raise FormatError("option table: a streaming query reads only the log: leave out table")
    if values["path"] is None and values["table"] is None:
        raise FormatError(
            "option path is missing: the store directory, or its URL; or give nameServer, the name "
            "servers of a running cluster"
        )
    check_one_strategy(values)
    options = ReadOptions(
        location=_location(values),
        table=values["table"],
        catalog=values["catalog"],
        catalog_name=values["catalogName"],
        topics=values["subscribe"],
        topic_pattern=values["subscribePattern"],
        queues=values["assign"],
        tags=None if values["tags"] and "*" in values["tags"] else values["tags"],
        keys=values["keys"],
        starting_position=values["startingPosition"],
        starting=limit_of(values, "starting", LATEST if streaming else EARLIEST),
        ending=limit_of(values, "ending", LATEST),
        latest_if_none=values["startingOffsetsByTimestampStrategy"] == LATEST,
        fail_on_data_loss=values["failOnDataLoss"],
        fail_on_subscription_change=values["failOnSubscriptionChange"],
        min_partitions=values["minPartitions"],
        max_records_per_partition=values["maxRecordsPerPartition"],
        max_offsets_per_trigger=values["maxOffsetsPerTrigger"],
        max_bytes_per_trigger=values["maxBytesPerTrigger"],
        min_offsets_per_trigger=values["minOffsetsPerTrigger"],
        max_trigger_delay=values["maxTriggerDelay"],
        columns=chosen_columns(values),
        broker_name=values["brokerName"],
        access_path=values["accessPath"],
        push_filters=values["pushFilters"],
        ignored=_ignored(given, streaming=bool(streaming)),
    )
    check_triggers(options.min_offsets_per_trigger, options.max_offsets_per_trigger)
    if streaming is not None:
        check_limits(options.starting, options.ending, given, streaming=streaming)
    return options


def is_union(given: Mapping[str, str]) -> bool:
    """Return whether a query names a table to read together with the store."""
    return any(name.lower() == "table" for name in given)


def location_of(given: Mapping[str, str]) -> Location:
    """Return the location of the store of a query; other options are not examined.

    Raises:
        FormatError: a value is wrong.
    """
    names = {name.lower() for name in ("path", "archive", *SETTINGS)}
    named = {name: text for name, text in given.items() if name.lower() in names}
    return _location(parse_options(SOURCE_OPTIONS, named))


def _location(values: Mapping[str, Any]) -> Location:
    settings = {name: values[name] for name in SETTINGS if values[name] is not None}
    return Location(values["path"] or "", values["archive"], settings)


def _ignored(given: Mapping[str, str], *, streaming: bool) -> tuple[str, ...]:
    other = "batch" if streaming else "streaming"
    means_nothing = {
        option.name.lower(): option.name
        for option in SOURCE_OPTIONS
        if option.queries == other or option.name.startswith("pull")
    }
    return tuple(means_nothing[name.lower()] for name in given if name.lower() in means_nothing)
