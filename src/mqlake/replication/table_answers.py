"""A master's responses to a slave's requests for tables, read in slices and checked.

A table may have 50,000 entries or more, and integer keys without quotes, as fastjson writes them.
A malformed response is refused as a whole: the slave then keeps its own table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from mqlake.formats.config import DataVersion
from mqlake.formats.config.message_request_mode import MessageRequestMode
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topic_queue_mapping import TopicQueueMapping
from mqlake.formats.config.topics import Topic
from mqlake.formats.file_name import is_safe_topic
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.protocol.body import decode_body, quoted_keys
from mqlake.protocol.command import Body
from mqlake.protocol.errors import BodyError
from mqlake.protocol.logic_queues.plans import MOST_QUEUES
from mqlake.remoting.slices import Job

T = TypeVar("T")
Members = dict[str, msgspec.Raw]

MOST_ENTRIES: Final = 1_000_000
LONGEST_NAME: Final = 255
_LONGEST_KEY: Final = 2 * LONGEST_NAME + 1
_PIECE: Final = 64 * 1024
"""Bytes that are processed in one slice."""
_MOST: Final = 2**63 - 1

_members = msgspec.json.Decoder(Members).decode


def read_members(data: Body) -> Job[Members]:
    """Return the members of a JSON object, undecoded.

    Raises:
        BodyError: the body is not a JSON object.
    """
    try:
        return _members(data)
    except msgspec.MsgspecError:
        pass
    yield
    pieces: list[bytes] = []
    rest, at = bytes(data), 0
    while at < len(rest):
        # A comma stays with the key after it: `quoted_keys` looks for both.
        end = rest.find(b"},", at + _PIECE)
        end = len(rest) if end < 0 else end + 1
        pieces.append(quoted_keys(rest[at:end]))
        at = end
        yield
    return _decoded(_members, b"".join(pieces))


class NamedTable(NamedTuple, Generic[T]):
    """A table whose entries contain the names that they are stored under.

    Attributes:
        member: the member of the response.
        kind: the type of the entries.
        own: returns the name that an entry contains.
    """

    member: str
    kind: type[T]
    own: Callable[[T], str]


TOPICS: Final = NamedTable("topicConfigTable", Topic, attrgetter("topic_name"))
MAPPINGS: Final = NamedTable("topicQueueMappingDetailMap", TopicQueueMapping, attrgetter("topic"))
GROUPS: Final = NamedTable("subscriptionGroupTable", SubscriptionGroup, attrgetter("group_name"))


def named(members: Members, table: NamedTable[T]) -> Job[dict[str, T]]:
    """Return the entries of a table by name.

    Raises:
        BodyError: the table is malformed.
    """
    found = yield from _table(members, table.member, table.kind)
    for name, entry in found.items():
        _check_name(name, table.own(entry))
        yield
    return found


def incarnations(members: Members) -> EndedIncarnations | None:
    """Return which topics and groups a master has deleted, None if it does not say so.

    Raises:
        BodyError: the table is malformed.
    """
    found = members.get("incarnations")
    return None if found is None else decode_body(EndedIncarnations, bytes(found))


def forbidden(members: Members) -> Job[dict[str, dict[str, int]]]:
    """Return which topics groups may not read, by group and topic.

    Raises:
        BodyError: the table is malformed.
    """
    return (yield from _table(members, "forbiddenTable", dict[str, int]))


def consumer_offsets(members: Members) -> Job[dict[str, dict[int, int]]]:
    """Return committed offsets by `topic@group` and queue id.

    RocketMQ's brokers store whatever a client commits. Negative offsets are left out, except for
    -1: otherwise one client could keep a slave from following its master.

    Raises:
        BodyError: the table is malformed.
    """
    found = yield from _table(members, "offsetTable", dict[int, int], _LONGEST_KEY)
    for key, queues in found.items():
        for queue_id, offset in list(queues.items()):
            if not 0 <= queue_id < MOST_QUEUES or not -_MOST - 1 <= offset <= _MOST:
                raise BodyError(f"offset {offset} of {key[:100]}, queue {queue_id}")
            if offset < -1:
                del queues[queue_id]
        yield
    return found


def delay_offsets(members: Members) -> dict[int, int]:
    """Return queue offsets by delay level.

    Raises:
        BodyError: the table is malformed.
    """
    found = decode_body(dict[int, int], bytes(_member(members, "offsetTable")))
    for level, offset in found.items():
        if not 0 < level <= MOST_QUEUES or not 0 <= offset <= _MOST:
            raise BodyError(f"delay level {level} has the offset {offset}")
    return found


def request_modes(members: Members) -> Job[dict[str, dict[str, MessageRequestMode]]]:
    """Return which groups pop which topics, by topic and group.

    Raises:
        BodyError: the table is malformed.
    """
    return (yield from _table(members, "messageRequestModeMap", dict[str, MessageRequestMode]))


def version(members: Members, name: str = "dataVersion") -> DataVersion:
    """Return the version in a response.

    Raises:
        BodyError: the response has no valid version.
    """
    return decode_body(DataVersion, bytes(_member(members, name)))


def _table(
    members: Members, name: str, kind: type[T], longest: int = LONGEST_NAME
) -> Job[dict[str, T]]:
    raw = _decoded(_members, _member(members, name))
    if len(raw) > MOST_ENTRIES:
        raise BodyError(f"{name} has {len(raw)} entries, more than {MOST_ENTRIES}")
    yield
    found: dict[str, T] = {}
    for key, text in raw.items():
        if len(key) > longest:
            raise BodyError(f"{name} has a name of {len(key)} characters")
        found[key] = decode_body(kind, bytes(text))
        yield
    return found


def _member(members: Mapping[str, msgspec.Raw], name: str) -> msgspec.Raw:
    found = members.get(name)
    if found is None:
        raise BodyError(f"the answer has no {name}")
    return found


def _decoded(decode: Callable[[Any], Members], data: Body | msgspec.Raw) -> Members:
    try:
        return decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BodyError(f"the answer is not a table: {error}") from None


def _check_name(name: str, own: str) -> None:
    """Refuse an entry stored under another name than its own, or under an unsafe file name."""
    if name != own or not is_safe_topic(name.encode("utf-8", "surrogatepass")):
        raise BodyError(f"the entry {name[:100]!r} is of {own[:100]!r}")
