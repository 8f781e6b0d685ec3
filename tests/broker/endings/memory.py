"""Find a text in everything that a broker has in memory."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

_PLAIN = (int, float, bool, memoryview, type(None), type, types.ModuleType)
_MAPPINGS = (dict, types.MappingProxyType)
_SEQUENCES = (list, tuple, set, frozenset, deque)


def mentions(roots: dict[str, object], text: str) -> list[str]:
    """Return the paths from the roots to texts and bytes that contain a text, and what they are.

    Each object is visited once.

    Only objects of this project are entered, and containers and functions that they hold.
    """
    seen: set[int] = set()
    held: list[object] = []  # Ids of objects that are gone would be given to others.
    found: list[str] = []
    waiting = deque(roots.items())
    while waiting:
        path, value = waiting.popleft()
        if isinstance(value, str):
            if text in value:
                found.append(f"{path} = {value}")
            continue
        if isinstance(value, bytes | bytearray):
            if text.encode() in value:
                found.append(f"{path} = {bytes(value)[:80]!r}")
            continue
        if isinstance(value, _PLAIN) or id(value) in seen:
            continue
        seen.add(id(value))
        held.append(value)
        waiting.extend((f"{path}{step}", each) for step, each in _inside(value))
    return found


def _inside(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, _MAPPINGS):
        for key, each in list(value.items()):
            yield "{}", key
            yield "[]", each
    elif isinstance(value, _SEQUENCES):
        yield from (("[]", each) for each in list(value))
    elif isinstance(value, types.MethodType):
        yield "", value.__self__
    elif isinstance(value, functools.partial):
        yield "()", (value.args, value.keywords)
    elif isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            try:
                yield "()", cell.cell_contents
            except ValueError:
                continue  # It is not assigned yet.
    elif str(type(value).__module__).startswith("mqlake."):
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, object]]:
    name = type(value).__name__
    names = {
        slot
        for kind in type(value).__mro__
        for slot in _slots(kind)
        if slot not in ("__dict__", "__weakref__")
    }
    for attribute in sorted({*names, *getattr(value, "__dict__", ())}):
        private = f"_{name}{attribute}" if attribute.startswith("__") else attribute
        try:
            yield f" {name}.{attribute}", getattr(value, private)
        except AttributeError:
            continue


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    fields = vars(kind).get("__struct_fields__", ())
    of_struct: tuple[str, ...] = fields if isinstance(fields, tuple) else ()
    return (*((slots,) if isinstance(slots, str) else slots), *of_struct)
