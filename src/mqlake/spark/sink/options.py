"""The options of one write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from mqlake.errors import FormatError
from mqlake.query.reading.parsing import parse_options
from mqlake.spark.sink.option_table import SETTINGS, SINK_OPTIONS
from mqlake.store.settings import StoreSettings, make_settings


class WriteOptions(msgspec.Struct, frozen=True):
    """The target of the messages; names as in `option_table`, None if an option has no value."""

    path: Path
    topic: str | None
    queues: int
    settings: StoreSettings


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Read the options of a write.

    Raises:
        FormatError: an option or value does not exist, or there is no path.
        StoreError: a setting has an invalid value.
    """
    values = parse_options(SINK_OPTIONS, given)
    if values["path"] is None:
        raise FormatError("option path is missing: the store directory to write")
    settings = {name: values[name] for name in SETTINGS if values[name] is not None}
    return WriteOptions(
        path=_local(values["path"]),
        topic=values["topic"],
        queues=values["defaultTopicQueueNums"],
        settings=make_settings(settings),
    )


def _local(path: str) -> Path:
    if path.startswith("file:"):
        return Path(unquote(urlsplit(path).path))
    if "://" in path:
        raise FormatError(
            f"option path: {path!r} is a URL; a store is written to a directory that this machine "
            "and all workers have mounted"
        )
    return Path(path).absolute()
