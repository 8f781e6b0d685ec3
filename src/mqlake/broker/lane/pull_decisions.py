"""What the ordinary path has decided about pulls, for as long as it would decide the same again."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

import msgspec

from mqlake.broker.lane.pull_layout import MOST_MESSAGES, MOST_TAGS
from mqlake.broker.lane.pull_tables import AcceptedPulls
from mqlake.broker.lane.pull_texts import DIGEST, NUMBERED, GappedText, answer_text, signed_text
from mqlake.broker.lane.users import LaneUsers
from mqlake.broker.pull.answers import messages_template
from mqlake.broker.pull.commits import GroupTopic
from mqlake.broker.pull.requests import PullRequests
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.client.cluster import MASTER
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.protocol import binary_header, json_header
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.frames import LENGTHS
from mqlake.protocol.headers.pull import COMMITS_OFFSET, PullHeader
from mqlake.protocol.signature import ACCESS_KEY, SIGNATURE
from mqlake.protocol.template import FrameTemplate
from mqlake.remoting.connection import Peer
from mqlake.store.queues.queue_kind import kind_of
from mqlake.store.results import Status

_FIELDS: Final = ("nextBeginOffset", "minOffset", "maxOffset")
_SAMPLES: Final = (
    (7, 123_456_789_012, 0, 77_007),
    (10_203, 5, 99_999_999_999_999, 2**31 - 1),
    (0, 10, 11, 0),
)
"""Numbers with which each header, of a pull and of its answers, is checked."""
_SIGNATURES: Final = (7**56, 0, (1 << 160) - 1)
"""What is written as a signature in the headers with these numbers."""

Changes = tuple[int, ...]


class PullDecisions:
    """Asks the ordinary path about pulls.

    Attributes:
        users: the users who have signed requests.
    """

    def __init__(
        self, pulls: PullRequests, state: BrokerState, runtime: BrokerRuntime, users: LaneUsers
    ) -> None:
        self.users = users
        self._pulls, self._state, self._live = pulls, state, runtime.live
        config = state.store.config
        self._offsets = config.consumer_offsets
        self._tables = config.topics, config.static_topics, config.groups
        self._seen: tuple[BrokerSettings, Changes] = runtime.live.now, self._changes()

    def _changes(self) -> Changes:
        topics, static_topics, groups = self._tables
        return (
            topics.changes,
            static_topics.changes,
            groups.changes,
            self._state.clients.consumer_changes,
            self._offsets.reset_changes,
        )

    def have_changed(self) -> bool:
        """Return whether decisions may be others than at the last call."""
        settings, changes = self._live.now, self._changes()
        if settings is self._seen[0] and changes == self._seen[1]:
            return False
        self._seen = settings, changes
        return True

    def decide(self, peer: Peer, request: Command, text: GappedText) -> AcceptedPulls | None:
        """Return how pulls with a header are served; None if the ordinary path serves them.

        Args:
            text: the header without its numbers.

        Raises:
            FormatError: this is no pull.
        """
        header = request.header(PullHeader)
        if request.code != RequestCode.PULL_MESSAGE or request.flag:
            return None
        if not self._may_be_kept() or self._pulls.is_costly(header):
            return None
        signed = signed_text(request) if SIGNATURE in request.fields else None
        if self.users.are_checked and signed is None:
            return None
        if not is_read_as(text, request, header):
            return None
        try:
            allowed, wanted = self._pulls.check(peer, request, header)
        except RemotingError:  # The pull itself gets it as its answer.
            return None
        topic, group, settings = allowed.topic, allowed.group, self._live.now
        codes = self._state.store.reads.tags_codes(header.topic, allowed.choice.tags)
        if (
            allowed.choice.condition is not None
            or self._state.topics.direct(header.topic) is not topic
            or kind_of(topic).has_batches
            or wanted.messages > MOST_MESSAGES
            or len(codes or ()) > MOST_TAGS
            or self._awaits_reset(header, topic.read_queue_nums)
        ):
            return None
        template = messages_template(
            request.serialization, Status.FOUND.value, topic, group, MASTER
        )
        answer = _answer(template, request.serialization)
        if answer is None:
            return None
        examined = settings.max_filter_message_size // ENTRY_SIZE if codes is not None else 0
        return AcceptedPulls(
            of=GroupTopic(header.consumer_group, header.topic),
            commits=bool(header.sys_flag & COMMITS_OFFSET),
            queues=topic.read_queue_nums,
            messages=wanted.messages,
            bytes=wanted.bytes,
            entries=max(examined, wanted.messages),
            codes=codes,
            answer=answer,
            request=request,
            signed=signed,
        )

    def accept(self, peer: Peer, request: Command) -> bool:
        """Return whether the checks accept a pull: who may not make it must not be asked for."""
        return not self.users.are_checked or self.users.accept(peer, request)

    def place_if_permitted(self, number: int, accepted: AcceptedPulls) -> int | None:
        """Return the place of a user in the table if these pulls are the user's, who may make them;
        otherwise None.

        Args:
            number: of the user.
        """
        request = accepted.request
        if self.users.name(number) != request.fields.get(ACCESS_KEY):
            return None
        return self.users.place_if_permitted(number, [request])

    def _may_be_kept(self) -> bool:
        """Return whether no decision depends on the connection, or on what was read."""
        now = self._live.now
        return not (now.is_slave or now.slave_read_enable or now.reject_pull_consumer_enable)

    def _awaits_reset(self, header: PullHeader, queues: int) -> bool:
        offsets, group, topic = self._offsets, header.consumer_group, header.topic
        return offsets.has_resets and any(
            offsets.has_reset(group, topic, queue_id) for queue_id in range(queues)
        )


def decode(kind: int, data: bytes) -> Command:
    """Return the command of a header.

    Raises:
        FormatError: this is no such header.
    """
    binary = kind == Serialization.ROCKETMQ
    return binary_header.decode(data) if binary else json_header.decode(data)


def is_read_as(text: GappedText, request: Command, header: PullHeader) -> bool:
    """Return whether a header with other numbers is read as the same one with these numbers."""
    for numbers, signature in zip(_SAMPLES, _SIGNATURES, strict=True):
        queue_id, offset, commit, opaque = numbers
        command = decode(request.serialization, text.fill((*numbers, signature)))
        expected = msgspec.structs.replace(
            header, queue_id=queue_id, commit_offset=commit, queue_offset=offset
        )
        read, fields = command.header(PullHeader), {**request.fields}
        fields |= {name: str(numbers[number]) for name, number in NUMBERED.items()}
        if SIGNATURE in fields:
            fields[SIGNATURE] = b64encode(signature.to_bytes(DIGEST)).decode()
        if (command.code, command.flag, command.opaque) != (request.code, 0, opaque):
            return False
        if read != expected or command.fields != fields:
            return False
    return True


def _answer(template: FrameTemplate, kind: int) -> GappedText | None:
    """Return the header of an answer; None if it is not typical."""
    first = _SAMPLES[0]
    sample = template.fill(*first)[LENGTHS.size :]
    text = answer_text(sample, kind, zip(_FIELDS, first, strict=False), first[-1])
    if text is None or any(_headed(kind, text.fill(n)) != template.fill(*n) for n in _SAMPLES):
        return None
    return text


def _headed(kind: int, header: bytes) -> bytes:
    return LENGTHS.pack(len(header) + 4, kind << 24 | len(header)) + header
