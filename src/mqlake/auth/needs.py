"""Which permissions a request needs, and how the names in it are found.

A rule is a tuple of parts. Each part yields needs; all of them must be granted. RocketMQ finds them
by annotations of its header classes, and in `DefaultAuthorizationContextBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mqlake.auth.policies import Action
from mqlake.auth.refusals import refused, shown
from mqlake.auth.resource import ResourceKind
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.command import Body

Actions = frozenset[Action]

PUB, SUB, GET = frozenset({Action.PUB}), frozenset({Action.SUB}), frozenset({Action.GET})
CREATE, UPDATE = frozenset({Action.CREATE}), frozenset({Action.UPDATE})
DELETE = frozenset({Action.DELETE})


class Need(NamedTuple):
    """One of these actions on a topic, a group or the cluster."""

    kind: ResourceKind
    name: str
    actions: Actions

    @property
    def text(self) -> str:
        """Return the resource for a remark."""
        return f"{self.kind.value}:{shown(self.name)}"


class Question(NamedTuple):
    """What a request says, as the parts of a rule read it.

    Attributes:
        cluster: the name of the broker's cluster.
        topic_at: returns the topic of the message at a physical offset, None without a message; for
            a message that waits for its delivery or its transaction, the topic that it is for.
    """

    fields: Mapping[str, str]
    body: Body
    cluster: str
    topic_at: Callable[[int], str | None]


class Part(Protocol):
    """A part of a rule."""

    def find(self, question: Question) -> Iterator[Need]:
        """Yield what a request needs.

        Raises:
            RemotingError: nobody may make the request.
            BodyError: the body cannot be read.
        """
        ...

    @property
    def text(self) -> str:
        """Return the part for the documentation."""
        ...


Rule = tuple[Part, ...]
"""All parts must be granted; a rule without parts needs a known user only."""


def words(actions: Actions) -> str:
    """Return actions for a log or the documentation."""
    return " or ".join(action.value for action in Action if action in actions)


def topic_needs(
    topic: str, actions: Actions, group: str | None = None, *, is_receipt: bool = False
) -> Iterator[Need]:
    """Yield what a request about a topic needs.

    A retry topic belongs to a group: a request that names a group, for which it needs a permission
    of its own, may name only the retry topics of that group.

    Args:
        group: of the request; None if it names none.
        is_receipt: whether the topic is that of a receipt, for which only the group is looked up.

    Raises:
        RemotingError: the retry topic is another group's.
    """
    if not topic.startswith(RETRY_PREFIX):
        yield Need(ResourceKind.TOPIC, topic, actions)
        return
    rest = topic[len(RETRY_PREFIX) :]
    if group is None:
        yield Need(
            ResourceKind.GROUP, rest.partition("+")[0], SUB if actions == PUB else actions - PUB
        )
        return
    if rest == group:
        return
    # `group_topic` may also be the whole name of another group: it is accepted in receipts only.
    for separator in "+_" if is_receipt else "+":
        if group and rest.startswith(group + separator):
            yield Need(ResourceKind.TOPIC, rest[len(group) + 1 :], actions)
            return
    raise refused(f"the retry topic {shown(topic)} is not that of group {shown(group)}.")


@dataclass(frozen=True)
class OnCluster:
    """A permission for the whole cluster."""

    actions: Actions

    def find(self, question: Question) -> Iterator[Need]:
        yield Need(ResourceKind.CLUSTER, question.cluster, self.actions)

    @property
    def text(self) -> str:
        return f"cluster: {words(self.actions)}"


@dataclass(frozen=True)
class OnTopic:
    """The topic in a header field.

    Attributes:
        field: without it, or if it is empty, the cluster is asked if `is_optional`.
        group_field: the field of the group to which a retry topic must belong.
    """

    actions: Actions
    field: str = "topic"
    group_field: str | None = None
    is_optional: bool = False
    is_receipt: bool = False

    def find(self, question: Question) -> Iterator[Need]:
        topic = question.fields.get(self.field, "")
        if not topic.strip() and self.is_optional:
            return iter((Need(ResourceKind.CLUSTER, question.cluster, self.actions - SUB or GET),))
        group = None if self.group_field is None else question.fields.get(self.group_field, "")
        return topic_needs(topic, self.actions, group, is_receipt=self.is_receipt)

    @property
    def text(self) -> str:
        otherwise = ", or without it the cluster" if self.is_optional else ""
        return f"topic `{self.field}`{otherwise}: {words(self.actions)}"


@dataclass(frozen=True)
class OnGroup:
    """The group in a header field.

    Attributes:
        is_optional: whether nothing is needed if the field is missing.
    """

    actions: Actions
    field: str = "consumerGroup"
    is_optional: bool = False

    def find(self, question: Question) -> Iterator[Need]:
        group = question.fields.get(self.field)
        if group is not None or not self.is_optional:
            yield Need(ResourceKind.GROUP, group or "", self.actions)

    @property
    def text(self) -> str:
        return f"group `{self.field}`{' if given' * self.is_optional}: {words(self.actions)}"


@dataclass(frozen=True)
class OnEach:
    """Several topics or groups in a header field, with a separator between them."""

    kind: ResourceKind
    actions: Actions
    field: str
    separator: str

    def find(self, question: Question) -> Iterator[Need]:
        for name in question.fields.get(self.field, "").split(self.separator):
            if not (name := name.strip()):
                continue
            if self.kind is ResourceKind.TOPIC:
                yield from topic_needs(name, self.actions)
            else:
                yield Need(self.kind, name, self.actions)

    @property
    def text(self) -> str:
        return f"each {self.kind.value.lower()} of `{self.field}`: {words(self.actions)}"


@dataclass(frozen=True)
class OnMessage:
    """The topic of the message at a physical offset, whatever topic the request names.

    Attributes:
        offset: returns the physical offset, None if the request has none.
        group_field: the field of the group to which a retry topic must belong.
    """

    actions: Actions
    offset: Callable[[Question], int | None]
    group_field: str | None = None

    def find(self, question: Question) -> Iterator[Need]:
        offset = self.offset(question)
        topic = None if offset is None else question.topic_at(offset)
        if topic is None:
            return iter((Need(ResourceKind.CLUSTER, question.cluster, GET),))
        group = None if self.group_field is None else question.fields.get(self.group_field, "")
        return topic_needs(topic, self.actions, group)

    @property
    def text(self) -> str:
        return f"topic of the message: {words(self.actions)}, or without a message cluster: Get"


@dataclass(frozen=True)
class InBody:
    """Names in the body."""

    names: str
    function: Callable[[Question], Iterator[Need]]

    def find(self, question: Question) -> Iterator[Need]:
        return self.function(question)

    @property
    def text(self) -> str:
        return self.names
