"""The catalog of an Iceberg table, and the table's name in it."""

# pyright: basic
# Reason: pyiceberg carries few types.

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname

from mqlake.errors import JobError
from mqlake.lake.files.lake_files import is_url
from mqlake.lake.options import STATE, FollowOptions
from mqlake.lake.tables.lake_options import iceberg_options

try:
    from pyiceberg.catalog import Catalog, load_catalog
except ImportError:
    raise JobError("pyiceberg is not installed: pip install 'mqlake[iceberg]'") from None

NAMESPACE = "mqlake"
SCHEME = "file://"


def exists(options: FollowOptions) -> bool:
    """Return whether a catalog has a table."""
    return open_catalog(options).table_exists(identifier_of(options))


def identifier_of(options: FollowOptions) -> str:
    return options.table or f"{NAMESPACE}.{options.out.name}"


def open_catalog(options: FollowOptions) -> Catalog:
    given, state = dict(options.catalog_options), options.out / STATE
    if options.url is not None and options.catalog is None and not given:
        raise JobError(f"{options.url}: a table on an object store needs --catalog")
    if options.catalog is not None:
        given["uri"] = options.catalog
    elif not given:
        state.mkdir(parents=True, exist_ok=True)
        given["uri"] = f"sqlite:///{state / 'catalog.db'}"
    if given.get("type") != "rest" and not given.get("uri", "").startswith("http"):
        given.setdefault("warehouse", uri_of(dirname(options.place)))  # REST servers name theirs
    if options.url is not None:
        given = {**iceberg_options(options.url, options.storage), **given}
    try:
        return load_catalog(options.catalog_name, **given)
    except Exception as error:  # noqa: BLE001  catalogs raise whatever their libraries do
        reason = without_secrets(str(error), given)
        name = without_secrets(given.get("uri", options.catalog_name), given)
        raise JobError(f"{name}: this catalog cannot be opened: {reason}") from None


def without_secrets(text: str, given: Mapping[str, str]) -> str:
    """Return a text without the values of options, and without the part before `@` in a URI."""
    for name, value in given.items():
        if name not in ("uri", "type", "warehouse") and value:
            text = text.replace(value, "***")
    return re.sub(r"(?<=://)[^/@\s]*@", "***@", text)


def uri_of(path: str) -> str:
    """Return the URI of a path or URL."""
    return path if is_url(path) else f"{SCHEME}{path}"


def place_of(uri: str) -> str:
    """Return the path or URL of a URI."""
    return uri.removeprefix(SCHEME)
