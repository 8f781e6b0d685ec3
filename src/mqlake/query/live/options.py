"""The options of one query on a running cluster, parsed and checked for contradictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mqlake.client import access
from mqlake.client.access import ClientAccess
from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.naming import group_fault
from mqlake.query.live.option_table import ACCESS_OPTIONS, LIVE_OPTIONS, NAME_SERVER
from mqlake.query.live.place import ENVIRONMENT
from mqlake.query.reading.parsing import Option, parse_options
from mqlake.query.reading.query_options import QueryOptions, of_other_queries, shared
from mqlake.query.reading.queue_json import BrokerQueue
from mqlake.query.store.columns import chosen_columns
from mqlake.query.store.option_table import SOURCE_OPTIONS


class LiveOptions(QueryOptions[BrokerQueue], frozen=True, kw_only=True):
    """The options of a query; names as in `option_table`, None if an option has no value.

    Attributes:
        access: how servers are reached.
        retry_timeout: milliseconds.
        group: the group whose offsets are committed, if any.
        local_stores: directories that may be the store of a broker on a task's host.
    """

    name_servers: str
    access: ClientAccess
    queues: tuple[BrokerQueue, ...] | None
    tags: tuple[str, ...] | None
    keys: tuple[str, ...] | None
    pull_size: int
    retry_timeout: int
    group: str | None
    local_stores: tuple[str, ...]
    decompress: bool


def live_options(given: Mapping[str, str], *, streaming: bool | None = None) -> LiveOptions:
    """Parse the options of a query; without `streaming`, those that both kinds of query share.

    Raises:
        FormatError: an option or value does not exist, or options contradict each other.
    """
    check_known(given, LIVE_OPTIONS, SOURCE_OPTIONS)
    values = parse_options(LIVE_OPTIONS, with_name_server(given))
    group = values["groupId"]
    if group is not None and (fault := group_fault(group)):
        raise FormatError(f"option groupId: {fault}")
    return LiveOptions(
        **shared(values, given, streaming=streaming),
        name_servers=values["nameServer"],
        access=access_of(values),
        queues=values["assign"],
        tags=None if values["tags"] and "*" in values["tags"] else values["tags"],
        keys=values["keys"],
        columns=chosen_columns(values),
        pull_size=min(values["pullBatchSize"], 1 << 16),
        retry_timeout=values["retryTimeout"],
        group=group if values["commitOffsets"] else None,
        local_stores=values["localStore"] or (),
        decompress=values["decompress"],
        ignored=of_other_queries(LIVE_OPTIONS, given, streaming=streaming),
    )


def with_name_server(given: Mapping[str, str]) -> dict[str, str]:
    """Return options with the name servers of the environment if none are given."""
    known = {name.lower() for name in _names(NAME_SERVER)}
    if any(name.lower() in known for name in given):
        return dict(given)
    return {**given, NAME_SERVER.name: os.environ[ENVIRONMENT]}


def access_of(values: Mapping[str, Any]) -> ClientAccess:
    """Return how servers are reached, from parsed options and the environment.

    Raises:
        FormatError: options contradict each other.
    """
    given = {option.name: values[option.name] or "" for option in ACCESS_OPTIONS}
    try:
        return access.access_of(given, os.environ)
    except MqlakeError as error:
        raise FormatError(f"options of a running cluster: {error}") from None


def check_known(
    given: Mapping[str, str], live: Sequence[Option], of_directories: Sequence[Option]
) -> None:
    """Raise an error if an option has an effect only for a store directory.

    Raises:
        FormatError: there is such an option.
    """
    known = {name.lower() for option in live for name in _names(option)}
    others = {name.lower() for option in of_directories for name in _names(option)}
    for name in given:
        if name.lower() in others - known:
            raise FormatError(
                f"option {name} is for store directories (option path), not for a running cluster "
                "(option nameServer)"
            )


def _names(option: Option) -> tuple[str, ...]:
    return (option.name, *option.aliases)
