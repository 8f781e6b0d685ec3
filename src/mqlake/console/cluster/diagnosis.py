"""Why a consumer group lags, in sentences for the person who asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mqlake.admin.groups import QueueProgress
from mqlake.console.cluster.attention import BAD, WARN, AttentionNote
from mqlake.console.cluster.members import ConnectedMembers, ReportedMember
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue

_CLEARLY: Final = 1.1
"""Rates that differ by less are taken for equal."""
_MUCH: Final = 0.8
"""The share of the whole lag from which one queue is named."""
_IDLE: Final = 60_000
"""Milliseconds without a finished message after which a member is named."""
_POP: Final = "CONSUME_POP"
_BROADCASTING: Final = "BROADCASTING"


class GroupState(NamedTuple):
    """What is known of a group.

    Attributes:
        progress: its offsets.
        membership: its members.
        may_consume: whether each broker lets it consume, by the broker's name.
        in_rate, out_rate: messages a second, into its topics and to its members.
        now: milliseconds.
        missing: sentences about the brokers that did not report offsets.
    """

    progress: Sequence[QueueProgress]
    membership: ConnectedMembers
    may_consume: Mapping[str, bool]
    in_rate: float
    out_rate: float
    now: int
    missing: Sequence[str] = ()

    @property
    def is_known(self) -> bool:
        """Whether a broker reported offsets, or all that answer have none."""
        return bool(self.progress) or not self.missing

    @property
    def lag(self) -> int:
        """Messages that the group has not consumed."""
        return sum(max(0, each.lag) for each in self.progress)


def owners(members: Sequence[ReportedMember]) -> dict[MessageQueue, list[ReportedMember]]:
    """Return the members to which queues are assigned."""
    found: dict[MessageQueue, list[ReportedMember]] = {}
    for member in members:
        for queue in member.queues:
            found.setdefault(queue, []).append(member)
    return found


def queue_of(row: QueueProgress) -> MessageQueue:
    """Return the queue of an offset."""
    return MessageQueue(row.topic, row.broker_name, row.queue_id)


def diagnosis(state: GroupState) -> list[AttentionNote]:
    """Return what explains a group's lag, most important first; empty if nothing does."""
    found = [
        *(AttentionNote(BAD, text) for text in state.missing),
        *_forbidden(state),
        *_differing(state.membership),
    ]
    if state.lag == 0:
        return found
    members = state.membership.members
    found += [
        AttentionNote(WARN, f"These reasons may be incomplete: {text}")
        for text in state.membership.unknown
    ]
    if not members and not state.membership.unknown:
        text = "No consumer is connected: messages wait until one connects."
        return [AttentionNote(BAD, text), *found]
    unassigned = _unassigned(state)
    # Faster members do not help if there is no member.
    has_members = sum(row.lag for row in unassigned) < _MUCH * state.lag
    return [
        *found,
        *_failing(members),
        *_hanging(state),
        *_without_member(state, unassigned),
        *([*_one_queue(state), *_slow(state)] if has_members else []),
    ]


def _forbidden(state: GroupState) -> Iterator[AttentionNote]:
    for broker, may in sorted(state.may_consume.items()):
        if not may:
            yield AttentionNote(
                BAD, f"Broker {broker} does not let this group consume: consumeEnable is off."
            )


def _differing(membership: ConnectedMembers) -> Iterator[AttentionNote]:
    """Name topics to which members subscribe differently: then each gets messages of the other."""
    known = [each for each in membership.members if each.subscriptions is not None]
    topics = sorted({topic for each in known for topic in each.subscriptions or {}})
    for topic in topics:
        said = Counter((each.subscriptions or {}).get(topic, "") for each in known)
        if len(said) < 2:
            continue
        parts = [
            f"{count} subscribe to {text!r}" if text else f"{count} do not subscribe to it"
            for text, count in said.most_common(4)
        ]
        yield AttentionNote(
            BAD,
            f"Members differ about topic {topic}: {', '.join(parts)}. RocketMQ assigns queues as if"
            " all were equal, so messages are lost to the group or wait.",
        )


def _failing(members: Sequence[ReportedMember]) -> Iterator[AttentionNote]:
    failing = [each for each in members if each.failing > 0]
    if failing:
        rate = sum(each.failing for each in failing)
        yield AttentionNote(
            BAD,
            f"Handlers fail {rate:,.2f} messages a second, most at {failing[0].client_id}: each is"
            " delivered again later, and becomes a dead letter in the end.",
        )


def _hanging(state: GroupState) -> Iterator[AttentionNote]:
    """Name members that hold messages and finish none."""
    for member in state.membership.members:
        held = [each for each in member.queues.values() if each.cached_msg_count > 0]
        last = max((each.last_consume_timestamp for each in held), default=0)
        if held and 0 < last < state.now - _IDLE:
            count = sum(each.cached_msg_count for each in held)
            seconds = (state.now - last) // 1000
            yield AttentionNote(
                BAD,
                f"{member.client_id} holds {count:,} messages and has finished none for"
                f" {seconds:,} s: its handler may hang.",
            )


def _unassigned(state: GroupState) -> list[QueueProgress]:
    """Return the offsets of queues with a lag that no member consumes; empty if that is unknown."""
    membership = state.membership
    is_assigned = membership.model != _BROADCASTING and membership.consume_type != _POP
    all_known = membership.all_asked and all(
        each.subscriptions is not None for each in membership.members
    )
    if not is_assigned or not all_known:
        return []
    owned = owners(membership.members)
    return [row for row in state.progress if row.lag > 0 and queue_of(row) not in owned]


def _without_member(
    state: GroupState, unassigned: Sequence[QueueProgress]
) -> Iterator[AttentionNote]:
    """Name queues with a lag that no member consumes."""
    counts = Counter(row.topic for row in unassigned)
    for topic, count in sorted(counts.items()):
        what = "1 queue" if count == 1 else f"{count:,} queues"
        why = (
            "If it stays so for a minute, members share the queues by different strategies, or two"
            " have the same client id."
            if topic in state.membership.subscriptions
            else "No member subscribes to this topic."
        )
        yield AttentionNote(
            BAD, f"No member consumes {what} of {topic} with waiting messages. {why}"
        )


def _one_queue(state: GroupState) -> Iterator[AttentionNote]:
    rows = [row for row in state.progress if not row.topic.startswith(RETRY_PREFIX)]
    if len(rows) < 2:
        return
    worst = max(rows, key=lambda row: row.lag)
    if worst.lag < _MUCH * state.lag:
        return
    owned = owners(state.membership.members).get(queue_of(worst), [])
    whose = f", which {owned[0].client_id} consumes" if owned else ""
    yield AttentionNote(
        WARN,
        f"{worst.lag / state.lag:.0%} of the lag is in queue {worst.queue_id} of {worst.topic} on"
        f" {worst.broker_name}{whose}. Producers may use few keys, or this member is slow.",
    )


def _slow(state: GroupState) -> Iterator[AttentionNote]:
    if state.out_rate > 0 and state.in_rate > _CLEARLY * state.out_rate:
        if _filters(state.membership):
            return  # It receives less than is sent, however fast it is.
        yield AttentionNote(
            WARN,
            f"Producers send {state.in_rate:,.1f} messages a second, and the group receives"
            f" {state.out_rate:,.1f}: the lag grows. Add members or threads, or make the handler"
            " faster.",
        )
    elif state.out_rate > _CLEARLY * state.in_rate:
        seconds = state.lag / max(state.out_rate - state.in_rate, 0.01)
        if seconds < 1e7:
            yield AttentionNote(
                WARN, f"The group catches up. At this rate, it needs about {seconds / 60:,.0f} min."
            )


def _filters(membership: ConnectedMembers) -> bool:
    """Return whether a member subscribes to a part of a topic's messages."""
    known = (each.subscriptions or {} for each in membership.members)
    return any(text not in ("", "*") for texts in known for text in texts.values())
