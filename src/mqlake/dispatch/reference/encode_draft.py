"""Lay messages out as drafts of records (twin of `compiled.encode_draft`)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import properties, record_crc, sys_flag
from mqlake.formats.message_batch import decode_batch

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Ints
    from mqlake.dispatch.drafts import Drafts, Rows

_I32, _I64 = range(-(1 << 31), 1 << 31), range(-(1 << 63), 1 << 63)


class _Unusual(Exception):  # noqa: N818
    """A message is for the caller to look at."""


def draft_messages(
    drafts: Drafts, lead: int, queue_rows: Ints, host_rows: Ints, longest_body: int
) -> tuple[int, int]:
    packed = drafts.source.tobytes()[lead:]
    messages = [bytes(raw) for raw in msgspec.msgpack.decode(packed, type=list[msgspec.Raw])]
    end, to = len(drafts.source) - sum(map(len, messages)), 0
    queues, hosts = dict[Hashable, int](), dict[Hashable, int]()
    for row, message in enumerate(messages):
        end += len(message)
        draft = drafts.rows[row]
        draft["regular"] = 0
        try:
            values, behind_body = _unpack(message)
            data = _properties(values)
            _fill(draft, values, longest_body)
        except (_Unusual, msgspec.ValidationError):
            continue
        if len(data) > properties.MAX_LENGTH:
            continue
        drafts.texts[to : to + len(data)] = memoryview(data)
        draft["body_at"] = end - behind_body - len(values["body"])
        draft["properties_at"], draft["properties_length"] = to, len(data)
        to += len(data)
        draft["queue"] = _number(queues, (values["topic"], values["queue_id"]), queue_rows, row)
        draft["host"] = _number(hosts, values["born_host"], host_rows, row)
        draft["regular"] = 1
    return len(queues), len(hosts)


def draft_batch(source: Bytes, lead: int, rows: Rows) -> int:
    try:
        parts = list(decode_batch(source.tobytes()[lead:]))
    except FormatError:
        return -1
    for row, part in zip(rows, parts, strict=False):
        for name, value in part._asdict().items():
            row[name] = value + lead if name.endswith("_at") else value
    return len(parts)


def _unpack(message: bytes) -> tuple[dict[str, Any], int]:
    """Return a message's values by name, and how many packed bytes follow its body."""
    from mqlake.dispatch.drafts import FIELDS

    raws = [bytes(raw) for raw in msgspec.msgpack.decode(message, type=list[msgspec.Raw])]
    if len(raws) != len(FIELDS):
        raise _Unusual
    values = {name: msgspec.msgpack.decode(raw) for name, raw in zip(FIELDS, raws, strict=True)}
    return values, sum(map(len, raws[FIELDS.index("body") + 1 :]))


def _fill(draft: Rows, values: dict[str, Any], longest_body: int) -> None:
    body = values["body"]
    if type(body) is not bytes or len(body) > longest_body:
        raise _Unusual
    if type(values["topic"]) is not str or type(values["born_host"]) is not str:
        raise _Unusual
    for name, numbers in (
        ("queue_id", range(_I32.stop)),
        ("flag", _I32),
        ("sys_flag", _I32),
        ("reconsume_times", _I32),
        ("born_timestamp", _I64),
        ("prepared_transaction_offset", _I64),
    ):
        if type(values[name]) is not int or values[name] not in numbers:
            raise _Unusual
        draft[name] = values[name]
    if values["sys_flag"] & sys_flag.INNER_BATCH:
        raise _Unusual
    draft["body_length"] = len(body)


def _properties(values: dict[str, Any]) -> bytes:
    encoded, keys, tags = values["encoded_properties"], values["keys"], values["tags"]
    delay_level = values["delay_level"]
    if type(delay_level) is not int or delay_level not in _I64:
        raise _Unusual
    if encoded is not None:
        if type(encoded) is not bytes or _is_odd(encoded):
            raise _Unusual
        return encoded
    pairs = values["properties"]
    try:
        before = properties.encode_pairs({} if pairs is None else pairs)
        if not isinstance(keys, str):
            keys = properties.KEY_SEPARATOR.join(keys)
        if tags is not None and not isinstance(tags, str):
            raise _Unusual
        after = {properties.KEYS: keys, properties.TAGS: tags}
        if delay_level > 0:
            after[properties.DELAY] = str(delay_level)
        after = properties.encode_pairs({name: text for name, text in after.items() if text})
    except (FormatError, TypeError, AttributeError):
        raise _Unusual from None
    if delay_level < 0 or _is_odd(before):
        raise _Unusual
    return before + after


def _is_odd(data: bytes) -> bool:
    return properties.INNER_NUM.encode() in data or record_crc.FIRST in data


def _number(numbers: dict[Hashable, int], key: Hashable, rows: Ints, row: int) -> int:
    """Return the number of a key, in order of first appearance; note the row of that."""
    if key not in numbers:
        rows[len(numbers)] = row
    return numbers.setdefault(key, len(numbers))
