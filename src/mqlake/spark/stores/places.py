"""Which stores options name: several paths, or a pattern that directories match.

A pattern has `*`, `?` or `[…]` as in a shell; each part of a path is matched by itself, and only
stores count that match: other directories are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.spark.reading.directory import open_directory, open_location
from mqlake.spark.source.options import location_of
from mqlake.store.snapshot import is_store

_PATTERN = re.compile(r"[*?\[]")
_MOST = 10_000
"""Paths that a pattern may match."""


class Places(NamedTuple):
    """The paths of stores, and whether later ones may be found."""

    paths: tuple[str, ...]
    has_pattern: bool


def are_many(given: Mapping[str, str]) -> bool:
    """Say whether options name several stores, or a pattern."""
    texts = _texts(given)
    return len(texts) > 1 or any(map(_PATTERN.search, texts))


def with_one_path(given: Mapping[str, str]) -> dict[str, str]:
    """Return options that name one store in `path`, also if `paths` did."""
    others = {name: text for name, text in given.items() if name.lower() not in ("path", "paths")}
    texts = _texts(given)
    return {**others, "path": texts[0]} if texts else others


def find_places(given: Mapping[str, str]) -> Places:
    """Return the stores that there are now, by path.

    Raises:
        FormatError: a pattern matches very many paths.
        StoreError: a directory cannot be listed.
    """
    found: dict[str, None] = {}
    texts = _texts(given)
    for text in texts:
        paths = _matching(text, given) if _PATTERN.search(text) else [text]
        found.update(dict.fromkeys(paths))
    return Places(tuple(found), any(map(_PATTERN.search, texts)))


def _texts(given: Mapping[str, str]) -> list[str]:
    values = {name.lower(): text for name, text in given.items()}
    found = [part.strip() for part in values.get("path", "").split(",")]
    if "paths" in values:
        try:
            found += msgspec.json.decode(values["paths"], type=list[str])
        except msgspec.MsgspecError:
            raise FormatError(
                f"option paths: {values['paths'][:200]!r} is not a list of texts as JSON"
            ) from None
    return [text for text in found if text]


def _matching(pattern: str, given: Mapping[str, str]) -> list[str]:
    """Return the paths of stores that match a pattern, sorted."""
    # A scheme's // is no empty part, and the ? of a URL's query is no pattern.
    scheme, sign, rest = pattern.rpartition("://")
    parts = rest.rstrip("/").split("/")
    first = next(number for number, part in enumerate(parts) if _PATTERN.search(part))
    base = f"{scheme}{sign}{'/'.join(parts[:first])}" or ("/" if pattern.startswith("/") else ".")
    settings = location_of({**with_one_path(given), "path": base}).settings
    directory, found = open_directory(base, settings), [""]
    for part in parts[first:]:
        found = [
            f"{above}/{name}".lstrip("/")
            for above in found
            for name in directory.names(above)
            if fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
        ]
        if len(found) > _MOST:
            raise FormatError(f"{pattern}: more than {_MOST} paths match: make it narrower")
    paths = (f"{base.rstrip('/')}/{path}" for path in found if directory.is_directory(path))
    return [path for path in paths if _is_store(path, given)]


def _is_store(path: str, given: Mapping[str, str]) -> bool:
    return is_store(open_location(location_of({**with_one_path(given), "path": path})))
