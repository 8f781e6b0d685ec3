"""Declarations of all messages and enums, for type checkers.

    python -m mqlake.grpc.messages.stub > src/mqlake/grpc/messages/__init__.pyi

They follow from the tables, so that both cannot differ (`tests/grpc/messages/test_stub.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from mqlake.grpc.messages.build import MAP, WELL_KNOWN, MessageField, fields_of
from mqlake.grpc.messages.tables import ENUMS, MESSAGES

_HEAD: Final = """\
# Written by `python -m mqlake.grpc.messages.stub`.
from collections.abc import Iterable, Mapping, MutableMapping
from enum import IntEnum

from google.protobuf.internal import well_known_types
from google.protobuf.internal.containers import (
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
)
from google.protobuf.message import Message as ProtobufMessage"""
_PYTHON: Final = {"bool": "bool", "bytes": "bytes", "float": "float", "string": "str"}
_WELL_KNOWN_FIELDS: Final = [
    MessageField(1, "", "seconds", "", "int64"),
    MessageField(2, "", "nanos", "", "int32"),
]


def stub() -> str:
    """Return the text of `__init__.pyi`."""
    lines = [_HEAD]
    for name, values in ENUMS.items():
        lines += ["", f"class {name}(IntEnum):"]
        lines += [f"    {value} = {number}" for value, number in values.items()]
    for name in WELL_KNOWN:
        bases = f"ProtobufMessage, well_known_types.{name}"
        lines += _message(name, bases, _WELL_KNOWN_FIELDS)
    for name in MESSAGES:
        lines += _message(name, "ProtobufMessage", list(fields_of(name)))
    return "\n".join(lines) + "\n"


def _message(name: str, bases: str, fields: list[MessageField]) -> Iterator[str]:
    yield ""
    yield f"class {name}({bases}):"
    for field in fields:
        yield from _attribute(field)
    yield "    def __init__("
    yield "        self,"
    yield "        *,"
    for field in fields:
        yield f"        {field.name}: {_given(field)} | None = ...,"
    yield "    ) -> None: ..."


def _attribute(field: MessageField) -> Iterator[str]:
    if field.label == "*" or field.kind == MAP or not _is_scalar(field.kind):
        yield "    @property"
        yield f"    def {field.name}(self) -> {_held(field)}: ..."
    else:
        yield f"    {field.name}: {_python(field.kind)}"


def _is_scalar(kind: str) -> bool:
    return kind not in MESSAGES and kind not in WELL_KNOWN


def _python(kind: str) -> str:
    return kind if not _is_scalar(kind) else _PYTHON.get(kind, "int")


def _held(field: MessageField) -> str:
    """Return the type that a field has."""
    if field.kind == MAP:
        return "MutableMapping[str, str]"
    if field.label != "*":
        return _python(field.kind)
    kind = "Scalar" if _is_scalar(field.kind) else "Composite"
    return f"Repeated{kind}FieldContainer[{_python(field.kind)}]"


def _given(field: MessageField) -> str:
    """Return the type from which a field is made."""
    if field.kind == MAP:
        return "Mapping[str, str]"
    return f"Iterable[{_python(field.kind)}]" if field.label == "*" else _python(field.kind)


if __name__ == "__main__":
    sys.stdout.write(stub())
