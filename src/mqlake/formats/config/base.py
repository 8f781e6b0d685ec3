"""Load a configuration file, or its backup (docs/formats/config.md).

Upstream: `ConfigManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeVar, cast

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import fastjson
from mqlake.formats.fastjson_values import adapt

Read = Callable[[str], bytes | None]
"""Return a file of the `config` directory by name, or None if it does not exist."""


class DataVersion(msgspec.Struct, frozen=True, rename="camel"):
    """How often a table was changed, and when last (milliseconds)."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0


class Config(Protocol):
    """A Struct for one configuration file; fields that a release lacks keep their defaults."""

    file_name: ClassVar[str]


C = TypeVar("C", bound=Config)
T = TypeVar("T")


def load(read: Read, kind: type[C]) -> C | None:
    """Return a configuration file, or its `.bak` if the file is missing, empty or damaged.

    None if neither exists.

    Raises:
        FormatError: both are missing or damaged, and at least one is damaged; the message names it.
    """
    damage: FormatError | None = None
    for name in (kind.file_name, kind.file_name + ".bak"):
        content = read(name)
        if content:
            try:
                return decode(content, kind)
            except FormatError as error:
                damage = damage or FormatError(f"config/{name}: {error}")
    if damage:
        raise damage
    return None


def decode(content: bytes, kind: type[C]) -> C:
    """Return the configuration in a file's content; unknown fields are ignored, null is absent.

    Raises:
        FormatError: it is not JSON, or a field has the wrong type.
    """
    return convert(fastjson.loads(content), kind)


def convert(value: object, kind: type[T]) -> T:
    """Return the Struct for a value that `fastjson.loads` returned, as `decode` does.

    Raises:
        FormatError: a field has a type that fastjson does not convert to the declared one.
    """
    try:
        return msgspec.convert(_without_nulls(value), kind, strict=False)
    except msgspec.ValidationError:
        pass  # This is rare, and the walk through the declared types is slower.
    try:
        return msgspec.convert(adapt(value, kind), kind, strict=False)
    except (msgspec.ValidationError, OverflowError, ValueError) as error:
        raise FormatError(str(error)) from None


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {key: _without_nulls(item) for key, item in items if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in cast("list[object]", value)]
    return value
