"""The options of one query, parsed and checked for contradictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlake.errors import FormatError
from mqlake.kafka.isolation import Isolation
from mqlake.query.kafka_log.columns import COLUMNS, check_columns
from mqlake.query.kafka_log.option_table import NO_MEANING, SOURCE_OPTIONS
from mqlake.query.reading.directory import Location
from mqlake.query.reading.parsing import parse_options
from mqlake.query.reading.query_options import QueryOptions, of_other_queries, settings_of, shared

TopicPartition = tuple[str, int]


class KafkaLogReadOptions(QueryOptions[TopicPartition], frozen=True, kw_only=True):
    """The options of a query; names as in `option_table`, None if an option has no value."""

    location: Location
    partitions: tuple[TopicPartition, ...] | None
    isolation: Isolation

    @property
    def path(self) -> str:
        """The name of the log directory in messages."""
        return self.location.name


def read_options(given: Mapping[str, str], *, streaming: bool | None = None) -> KafkaLogReadOptions:
    """Parse the options of a query; without `streaming`, those that both kinds of query share.

    Raises:
        FormatError: an option or value does not exist, or options contradict each other.
    """
    about_brokers = [name for name in given if _is_about_brokers(name)]
    given = {name: text for name, text in given.items() if name not in about_brokers}
    values = parse_options(SOURCE_OPTIONS, given)
    if values["path"] is None:
        raise FormatError(
            "option path is missing: Kafka's log directory (log.dir), or its URL; Spark's format "
            "kafka reads brokers"
        )
    return KafkaLogReadOptions(
        **shared(values, given, streaming=streaming),
        location=Location(values["path"], settings=settings_of(values)),
        partitions=values["assign"],
        isolation=Isolation(values["isolation.level"]),
        columns=_columns(values),
        ignored=(*about_brokers, *of_other_queries(SOURCE_OPTIONS, given, streaming=streaming)),
    )


def _is_about_brokers(name: str) -> bool:
    known = {alias.lower() for option in SOURCE_OPTIONS for alias in option.aliases}
    return name.lower() not in known and name.lower().startswith(NO_MEANING)


def _columns(values: dict[str, Any]) -> tuple[str, ...]:
    if values["columns"]:
        return check_columns(values["columns"])
    return tuple(name for name in COLUMNS if name != "headers" or values["includeHeaders"])
