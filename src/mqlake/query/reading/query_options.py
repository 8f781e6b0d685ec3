"""The options that queries of all sources have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic

import msgspec

from mqlake.query.reading.limits import (
    EARLIEST,
    LATEST,
    Limit,
    Q,
    check_limits,
    check_one_strategy,
    check_triggers,
    limit_of,
)
from mqlake.query.reading.parsing import Option, choice, duration, text, whole
from mqlake.storage.remote.object_stores import SETTINGS

MIN_PARTITIONS = Option(
    "minPartitions",
    whole(1),
    None,
    "both",
    "The minimum number of tasks, approximately. Unset: one for each core of the driver's "
    "machine; more if tasks would exceed 1 GiB, fewer if they would be below 4 MiB.",
)
MAX_TRIGGER_DELAY = Option(
    "maxTriggerDelay",
    duration,
    "15m",
    "streaming",
    "The longest wait for `minOffsetsPerTrigger`.",
)
PUSH_FILTERS = Option(
    "pushFilters",
    choice("auto", "true", "false"),
    "auto",
    "batch",
    "Whether filters that Spark pushes down narrow what is read. `auto`: if that is safe, "
    "which it is not on Spark 4.2 and 4.3. `true`: always; set it only for a DataFrame that is "
    "used once, in a single query. `false`: never.",
)
OBJECT_STORES = tuple(Option(name, text, None, "both", what) for name, what in SETTINGS.items())


class QueryOptions(msgspec.Struct, Generic[Q], frozen=True, kw_only=True):
    """The options of a query; names as in the table of options, None if one has no value.

    Attributes:
        ignored: options that were given but have no effect in this kind of query.
    """

    topics: tuple[str, ...] | None
    topic_pattern: str | None
    starting: Limit[Q]
    ending: Limit[Q]
    latest_if_none: bool
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay: int
    push_filters: str
    columns: tuple[str, ...]
    ignored: tuple[str, ...]


def shared(
    values: Mapping[str, Any], given: Mapping[str, str], *, streaming: bool | None
) -> dict[str, Any]:
    """Return the attributes of `QueryOptions`, without columns and ignored options, checked.

    Args:
        values: by the names of options.
        given: the options as they were given.
        streaming: None to check only what both kinds of query share.

    Raises:
        FormatError: options contradict each other.
    """
    check_one_strategy(values)
    check_triggers(values["minOffsetsPerTrigger"], values["maxOffsetsPerTrigger"])
    starting = limit_of(values, "starting", LATEST if streaming else EARLIEST)
    ending = limit_of(values, "ending", LATEST)
    if streaming is not None:
        check_limits(starting, ending, given, streaming=streaming)
    return {
        "topics": values["subscribe"],
        "topic_pattern": values["subscribePattern"],
        "starting": starting,
        "ending": ending,
        "latest_if_none": values["startingOffsetsByTimestampStrategy"] == LATEST,
        "fail_on_data_loss": values["failOnDataLoss"],
        "min_partitions": values["minPartitions"],
        "max_records_per_partition": values["maxRecordsPerPartition"],
        "max_offsets_per_trigger": values["maxOffsetsPerTrigger"],
        "min_offsets_per_trigger": values["minOffsetsPerTrigger"],
        "max_trigger_delay": values["maxTriggerDelay"],
        "push_filters": values["pushFilters"],
    }


def of_other_queries(
    table: Sequence[Option], given: Mapping[str, str], *, streaming: bool | None
) -> tuple[str, ...]:
    """Return the given options that have an effect only in the other kind of query."""
    other = "batch" if streaming else "streaming"
    names = {option.name.lower() for option in table if option.queries == other}
    return tuple(name for name in given if name.lower() in names)


def settings_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of object stores among the values of options."""
    return {name: values[name] for name in SETTINGS if values[name] is not None}
