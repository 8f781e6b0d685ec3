"""The options of one query, parsed and checked for contradictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlake.errors import FormatError
from mqlake.query.reading.directory import Location
from mqlake.query.reading.parsing import parse_options
from mqlake.query.reading.query_options import QueryOptions, settings_of, shared
from mqlake.query.store.columns import chosen_columns
from mqlake.query.store.option_table import SOURCE_OPTIONS
from mqlake.storage.remote.object_stores import SETTINGS
from mqlake.store.log.scan import Queue


class StoreReadOptions(QueryOptions[Queue], frozen=True, kw_only=True):
    """The options of a query; names as in `option_table`, None if an option has no value."""

    location: Location
    """A store; its path is "" for the stores that `table` follows."""
    table: str | None
    catalog: str | None
    catalog_name: str
    queues: tuple[Queue, ...] | None
    tags: tuple[str, ...] | None
    keys: tuple[str, ...] | None
    starting_position: dict[str, Any] | None
    fail_on_subscription_change: bool
    max_bytes_per_trigger: int | None
    broker_name: str | None
    access_path: str
    decompress: bool
    system_topics: bool
    """Whether system topics are read; true if topics are selected."""

    @property
    def path(self) -> str:
        """The name of the store in messages."""
        return self.location.name


def read_options(given: Mapping[str, str], *, streaming: bool | None = None) -> StoreReadOptions:
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
    return StoreReadOptions(
        **shared(values, given, streaming=streaming),
        location=_location(values),
        table=values["table"],
        catalog=values["catalog"],
        catalog_name=values["catalogName"],
        queues=values["assign"],
        tags=None if values["tags"] and "*" in values["tags"] else values["tags"],
        keys=values["keys"],
        starting_position=values["startingPosition"],
        fail_on_subscription_change=values["failOnSubscriptionChange"],
        max_bytes_per_trigger=values["maxBytesPerTrigger"],
        columns=chosen_columns(values),
        broker_name=values["brokerName"],
        access_path=values["accessPath"],
        decompress=values["decompress"],
        system_topics=values["systemTopics"] or _selects_topics(values),
        ignored=_ignored(given, streaming=bool(streaming)),
    )


def _selects_topics(values: Mapping[str, Any]) -> bool:
    return any(values[name] is not None for name in ("subscribe", "subscribePattern", "assign"))


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
    return Location(values["path"] or "", values["archive"], settings_of(values))


def _ignored(given: Mapping[str, str], *, streaming: bool) -> tuple[str, ...]:
    other = "batch" if streaming else "streaming"
    means_nothing = {
        option.name.lower(): option.name
        for option in SOURCE_OPTIONS
        if option.queries == other or option.name.startswith("pull")
    }
    return tuple(means_nothing[name.lower()] for name in given if name.lower() in means_nothing)
