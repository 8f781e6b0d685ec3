"""Find the stores that options name: several paths, or a pattern that directories match.

A pattern contains `*`, `?` or `[…]`, as in a shell. Each part of a path is matched separately.
Directories that are not stores are ignored. In a URL, `?` begins the query string. If a local
directory has exactly the given name, the name is not a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from mqlake.errors import FormatError
from mqlake.query.reading.directory import open_directory, open_location
from mqlake.query.store.options import location_of
from mqlake.storage.shown_url import shown_url
from mqlake.store.snapshot import is_store

_PATTERN = re.compile(r"[*?\[]")
_MOST = 10_000
"""Maximum number of paths that a pattern may match."""


class Places(NamedTuple):
    """The paths of stores, whether more may be found later, and the paths and patterns that were
    given.
    """

    paths: tuple[str, ...]
    has_pattern: bool
    given: tuple[str, ...]


def are_many(given: Mapping[str, str]) -> bool:
    """Return whether options name several stores, or a pattern."""
    texts = _texts(given)
    return len(texts) > 1 or any(map(_is_pattern, texts))


def with_one_path(given: Mapping[str, str]) -> dict[str, str]:
    """Return options that name one store in `path`, even if `paths` did."""
    others = {name: text for name, text in given.items() if name.lower() not in ("path", "paths")}
    texts = _texts(given)
    return {**others, "path": texts[0]} if texts else others


def find_places(given: Mapping[str, str]) -> Places:
    """Return the existing stores, by path.

    Raises:
        FormatError: a pattern matches too many paths.
        StoreError: a directory cannot be listed.
    """
    found: dict[str, None] = {}
    texts = _texts(given)
    for text in texts:
        paths = _matching(text, given) if _is_pattern(text) else [text]
        found.update(dict.fromkeys(paths))
    return Places(tuple(found), any(map(_is_pattern, texts)), tuple(texts))


def _texts(given: Mapping[str, str]) -> list[str]:
    values = {name.lower(): text for name, text in given.items()}
    path = values.get("path", "").strip()
    found = [path] if _is_directory(path) else [part.strip() for part in path.split(",")]
    if "paths" in values:
        try:
            found += msgspec.json.decode(values["paths"], type=list[str])
        except msgspec.MsgspecError:
            raise FormatError(
                f"option paths: {values['paths'][:200]!r} is not a JSON list of strings"
            ) from None
    return [text for text in found if text]


def _is_pattern(text: str) -> bool:
    path = text.partition("?")[0] if "://" in text else text
    return _PATTERN.search(path) is not None and not _is_directory(text)


def _is_directory(text: str) -> bool:
    path = unquote(urlsplit(text).path) if text.startswith("file:") else text
    return "://" not in path and Path(path).is_dir()


def _matching(pattern: str, given: Mapping[str, str]) -> list[str]:
    """Return the paths of stores that match a pattern, sorted."""
    # The // of a scheme is not an empty part, and the ? of a URL's query is not a pattern.
    scheme, sign, rest = pattern.partition("://") if "://" in pattern else ("", "", pattern)
    rest, mark, query = rest.partition("?") if sign else (rest, "", "")
    parts = rest.rstrip("/").split("/")
    first = next(number for number, part in enumerate(parts) if _PATTERN.search(part))
    base = f"{scheme}{sign}{'/'.join(parts[:first])}" or ("/" if pattern.startswith("/") else ".")
    settings = location_of({**with_one_path(given), "path": base}).settings
    directory, found = open_directory(f"{base}{mark}{query}", settings), [""]
    for part in parts[first:]:
        found = [
            f"{above}/{name}".lstrip("/")
            for above in found
            for name in directory.names(above)
            if fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))
        ]
        if len(found) > _MOST:
            raise FormatError(
                f"{shown_url(pattern)}: more than {_MOST} paths match: use a narrower pattern"
            )
    there = (path for path in found if directory.is_directory(path))
    paths = (f"{base.rstrip('/')}/{path}{mark}{query}" for path in there)
    return [path for path in paths if _is_store(path, given)]


def _is_store(path: str, given: Mapping[str, str]) -> bool:
    return is_store(open_location(location_of({**with_one_path(given), "path": path})))
