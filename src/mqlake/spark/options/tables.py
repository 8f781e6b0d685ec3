"""Options of tables in a catalog: the options of `CREATE TABLE … USING` reach each query.

Spark shows a Python source the options of a table once, when it requests the columns of a new
table; later queries of that table come without any (`PythonTable`, at least up to Spark 4.3).
Catalogs do store the columns with their metadata, and pass those to each query. So the options are
stored there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mqlake.errors import FormatError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

METADATA = "mqlake.options"
"""The key in the metadata of a table's first column; the value is a JSON object."""

_OF_OPTIONS_CLAUSE = "option."
_PLACES = {"path", "paths", "table", "nameserver", "namesrvaddr", "rocketmq.namesrvaddr"}
_SECRETS = ("secret", "password", "token", "credential", "account.key", "access.key")
_CLASSES = ".provider"
"""The end of options that name a class, such as `fs.s3a.aws.credentials.provider`."""


Kind = TypeVar("Kind", bound=type)


def keeps_options_in_tables(source: Kind) -> Kind:
    """Let the tables of a data source keep their options (decorates a `DataSource` class)."""
    kind = cast("Any", source)
    kind.schema = _asked_for_columns(kind.schema)
    for name in ("reader", "streamReader"):
        setattr(kind, name, _asked_for_rows(getattr(kind, name)))
    for name in ("writer", "streamWriter"):
        setattr(kind, name, _given_rows(getattr(kind, name)))
    return source


def _asked_for_columns(schema: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @wraps(schema)
    def with_options(self: Any) -> Any:
        given = self.options
        if not is_statement(given, self.name()):
            return schema(self)
        self.options = options_of_statement(given)
        return with_kept(schema(self), self.options)

    return with_options


def _asked_for_rows(reader: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(reader)
    def with_options(self: Any, schema: StructType) -> Any:
        self.options = options_of_query(self.options, schema)
        return reader(self, schema)

    return with_options


def _given_rows(writer: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(writer)
    def with_options(self: Any, schema: StructType, overwrite: bool) -> Any:
        if not self.options:
            raise FormatError(
                "no options: Spark does not pass a table's options to a Python sink; write "
                "them in the statement: INSERT INTO table WITH (path '…') SELECT …"
            )
        return writer(self, schema, overwrite)

    return with_options


def is_statement(given: Mapping[str, str], source: str) -> bool:
    """Return whether these are the properties of `CREATE TABLE … USING source`."""
    return _lowered(given).get("provider", "").lower() == source.lower()


def options_of_statement(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options among the properties of a new table.

    Spark mixes its own properties (`owner`, `location`, `provider`, …) and TBLPROPERTIES with
    options; those of the clause OPTIONS occur a second time, with the prefix `option.`. Paths come
    from that clause or from LOCATION.

    Raises:
        FormatError: an option must not be in a catalog.
    """
    names = [
        name[len(_OF_OPTIONS_CLAUSE) :]
        for name in given
        if name.lower().startswith(_OF_OPTIONS_CLAUSE)
    ]
    properties = _lowered(given)
    options = {name: properties.get(name.lower(), "") for name in names}
    if "path" in properties:
        options["path"] = properties["path"]
    for name in options:
        if _is_secret(name.lower()):
            raise FormatError(
                f"option {name}: a table would show it to everyone who reads its columns; "
                "give it in each query, in its clause WITH (…)"
            )
    return options


def _is_secret(name: str) -> bool:
    return any(word in name for word in _SECRETS) and not name.endswith(_CLASSES)


def with_kept(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return a schema whose first column keeps the options of its table."""
    from pyspark.sql.types import StructField, StructType

    first, *others = schema.fields
    metadata = {**first.metadata, METADATA: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_of_query(given: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of a query: its own, and those that its table stores.

    A query with its own path or name servers does not read the table's source, so it has only its
    own options.

    Raises:
        FormatError: the query names a table that stores no options.
    """
    own = _lowered(given)
    if not _PLACES.isdisjoint(own):
        return dict(given)
    kept = [field.metadata[METADATA] for field in schema if METADATA in field.metadata]
    if not kept and not given:
        raise FormatError(
            "no options: Spark does not pass the options of a table that was created with a "
            "list of columns to a Python source; create the table without the list (the "
            "option columns chooses columns), or give the options in the query: SELECT … "
            "FROM table WITH (path '…')"
        )
    of_table: dict[str, str] = json.loads(kept[0]) if kept else {}
    return {name: text for name, text in of_table.items() if name.lower() not in own} | dict(given)


def _lowered(given: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in given.items()}
