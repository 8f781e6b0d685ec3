"""Convert JSON values to the types of their fields as fastjson does (docs/formats/fastjson.md).

Clients in other languages rely on it: rocketmq-client-cpp writes enums as ordinals and longs as
text.
Upstream: fastjson `TypeUtils.castToInt`, `castToBoolean`, `castToString`, `EnumDeserializer`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

ORDINALS: Final = "ordinals"
"""In the `extra` of a text field's `msgspec.Meta`: the names of a Java enum, by ordinal."""

_ABSENT: Final = object()
_NO_NUMBER: Final = ("", "null", "NULL")
_TRUE: Final = ("true", "1", "y", "t")
_FALSE: Final = ("false", "0", "n", "f")

_Adapt = Callable[[object], object]


def adapt(value: object, kind: type[Any]) -> object:
    """Return a value whose parts have the types that `kind` declares, if fastjson converts them.

    Nulls are left out, and what cannot be converted stays as it is.

    Args:
        value: what `fastjson.loads` returned.
        kind: a msgspec Struct, or any other type that msgspec decodes.
    """
    return _adapter(kind)(value)


@cache
def _adapter(kind: type[Any]) -> _Adapt:
    return _of(inspect.type_info(kind))


def _of(kind: inspect.Type, names: tuple[str, ...] = ()) -> _Adapt:
    match kind:
        case inspect.Metadata():
            extra = cast("dict[str, tuple[str, ...]] | None", cast("Any", kind).extra) or {}
            return _of(kind.type, extra.get(ORDINALS, ()))
        case inspect.StructType():
            return lambda value: _struct(kind.cls, value)
        case inspect.UnionType():
            others = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
            return _of(others[0]) if len(others) == 1 else _same
        case inspect.ListType() | inspect.SetType() | inspect.VarTupleType():
            return _list(_of(kind.item_type))
        case inspect.DictType():
            return _dict(_of(kind.value_type))
        case inspect.IntType():
            return _integer
        case inspect.BoolType():
            return _boolean
        case inspect.StrType():
            return lambda value: _text(value, names)
        case _:
            return _same


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[object, _Adapt]:
    info = cast("inspect.StructType", inspect.type_info(kind))
    return {field.encode_name: _of(field.type) for field in info.fields}


def _struct(kind: type[msgspec.Struct], value: object) -> object:
    if not isinstance(value, dict):
        return value
    # Looked up at each call, not when the adapter is made: a Struct may contain itself.
    fields = _fields(kind)
    items = cast("dict[object, object]", value).items()
    known = ((name, fields[name](item)) for name, item in items if name in fields)
    return {name: item for name, item in known if item is not None and item is not _ABSENT}


def _list(item: _Adapt) -> _Adapt:
    def adapted(value: object) -> object:
        if not isinstance(value, list):
            return value
        return [item(each) for each in cast("list[object]", value) if each is not None]

    return adapted


def _dict(item: _Adapt) -> _Adapt:
    def adapted(value: object) -> object:
        if not isinstance(value, dict):
            return value
        items = cast("dict[object, object]", value).items()
        return {name: item(each) for name, each in items if each is not None}

    return adapted


def _same(value: object) -> object:
    return value


def _integer(value: object) -> object:
    if isinstance(value, float):
        return int(value)
    return _ABSENT if value in _NO_NUMBER else value


def _boolean(value: object) -> object:
    if isinstance(value, int):
        return value == 1
    if not isinstance(value, str):
        return value
    if value in _NO_NUMBER:
        return _ABSENT
    word = value.lower()
    return True if word in _TRUE else False if word in _FALSE else value


def _text(value: object, names: tuple[str, ...]) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (int, float)):
        return value
    if not names:
        return str(value)
    is_ordinal = isinstance(value, int) and 0 <= value < len(names)
    return names[int(value)] if is_ordinal else value
