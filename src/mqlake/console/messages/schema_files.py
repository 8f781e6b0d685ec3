"""The schemas of bodies that the console offers: files of one directory."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Final, NamedTuple

from mqlake.console.page_error import PageError
from mqlake.errors import StoreError
from mqlake.storage.local import LocalDirectory
from mqlake.storage.read_file import read_file

_AVRO: Final = (".avsc", ".json")
_PROTOBUF: Final = (".desc", ".pb", ".binpb", ".protoset")
_MOST_FILES: Final = 500
_MOST_BYTES: Final = 1 << 20


class SchemaText(NamedTuple):
    """A schema as the form of a page has it.

    Attributes:
        form: "avro" or "protobuf".
        text: an Avro schema (JSON), or a descriptor file (Base64).
    """

    form: str
    text: str


def schema_names(directory: Path | None) -> list[str]:
    """Return the names of the schema files in a directory; none without a directory."""
    if directory is None:
        return []
    try:
        with os.scandir(directory) as entries:
            names = [each.name for each in entries if _form(each.name) and each.is_file()]
    except OSError:
        return []
    return sorted(names)[:_MOST_FILES]


def read_schema(directory: Path | None, name: str) -> SchemaText:
    """Return a schema of the directory.

    Raises:
        PageError: there is no such file, or it is too large.
    """
    if directory is None or name not in schema_names(directory):
        raise PageError(f"There is no schema {name[:200]!r}", "Choose one of the list.", 404)
    try:
        data = read_file(LocalDirectory(directory), name, _MOST_BYTES + 1)
    except StoreError as error:
        raise PageError(f"The schema {name} cannot be read: {error}") from None
    if data is None:
        raise PageError(f"The schema {name} was removed", "Choose another one.", 404)
    if len(data) > _MOST_BYTES:
        raise PageError(f"The schema {name} is larger than 1 MiB")
    form = _form(name)
    if form == "avro":
        return SchemaText(form, data.decode("utf-8", "replace"))
    return SchemaText(form, base64.b64encode(data).decode())


def _form(name: str) -> str:
    lowered = name.lower()
    if lowered.endswith(_AVRO):
        return "avro"
    return "protobuf" if lowered.endswith(_PROTOBUF) else ""
