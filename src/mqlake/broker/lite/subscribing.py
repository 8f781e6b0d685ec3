"""LITE_SUBSCRIPTION_CTL (upstream: `LiteSubscriptionCtlProcessor`)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from mqlake.broker.bodies import admin_body
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.lite.names import is_lite_topic, queue_name
from mqlake.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionChange,
    LiteSubscriptionChanges,
)
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import Peer
from mqlake.remoting.slices import Job

_ILLEGAL: Final = ResponseCode.ILLEGAL_OPERATION
_MIN, _MAX = 1, 2
_AT_ONCE: Final = 64
"""Lite topics that are subscribed between two looks at other requests."""


class LiteSubscribing:
    """Serves changes of subscriptions to lite topics."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._lite = state, runtime, state.lite

    def change(self, peer: Peer, request: Command) -> Command | Coroutine[Any, Any, Command]:
        """Change subscriptions of one or several clients."""
        if not request.body:
            raise RemotingError(_ILLEGAL, "Request body is null.")
        changes = admin_body(LiteSubscriptionChanges, request, self._runtime.settings)
        if not changes.subscription_set:
            raise RemotingError(_ILLEGAL, "LiteSubscriptionCtlRequestBody is empty.")
        job = self._change_all(peer, request, changes.subscription_set)
        return self._runtime.slices.serve(peer, job, size=len(request.body), is_kept=True)

    def _change_all(
        self, peer: Peer, request: Command, changes: list[LiteSubscriptionChange]
    ) -> Job[Command]:
        for change in changes:
            if change.client_id.strip() and change.group.strip() and change.topic.strip():
                yield from self._change(peer, change)
            yield
        return response(request)

    def _change(self, peer: Peer, change: LiteSubscriptionChange) -> Job[None]:
        lite = self._lite
        lite.queues.light  # noqa: B018 (it refuses if there are none)
        if change.action == "COMPLETE_REMOVE":
            self._leave(change)
            return
        if change.action in ("PARTIAL_ADD", "COMPLETE_ADD"):
            self._check_group(change)
            self._check_client(peer, change)
        elif change.action != "PARTIAL_REMOVE":
            raise RemotingError(_ILLEGAL, f"unknown action {change.action[:100]!r}")
        names = [
            queue_name(change.topic, each) for each in change.lite_topic_set if is_lite_topic(each)
        ]
        now = self._state.store.clock.milliseconds()
        if change.action == "PARTIAL_REMOVE":
            yield from self._remove(peer, change, names, now)
            return
        refusal = lite.subscriptions.client_refusal(change.client_id, peer)
        if refusal is not None:
            raise RemotingError(ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED, refusal)
        client = lite.subscriptions.enter(change.client_id, change.group, change.topic, peer, now)
        if change.action == "PARTIAL_ADD":
            begin = self._begin(change)
            for start in range(0, len(names), _AT_ONCE):
                lite.subscribe(client, names[start : start + _AT_ONCE], begin)
                yield
        else:
            yield from lite.replace(client, names)

    def _leave(self, change: LiteSubscriptionChange) -> None:
        """End all subscriptions of a client, unless it is one of another group."""
        client = self._lite.subscriptions.get(change.client_id)
        if client is None or client.consumes(change.group, change.topic):
            self._lite.leave(change.client_id)

    def _check_client(self, peer: Peer, change: LiteSubscriptionChange) -> None:
        """Refuse the id of a client of another group: its subscriptions there would end.

        The client itself may change its group, over its connection, or once that is closed.
        """
        client = self._lite.subscriptions.get(change.client_id)
        if client is None or client.consumes(change.group, change.topic):
            return
        if client.peer is not peer and not client.peer.is_closed:
            reason = f"{change.client_id[:255]!r} is a client of another group, which is connected"
            raise RemotingError(_ILLEGAL, reason)

    def _remove(
        self, peer: Peer, change: LiteSubscriptionChange, names: list[str], now: int
    ) -> Job[None]:
        """End subscriptions; a client that is not known has none, and stays unknown."""
        client = self._lite.subscriptions.get(change.client_id)
        if client is None or not client.consumes(change.group, change.topic):
            return
        client.heard(peer, now)
        for start in range(0, len(names), _AT_ONCE):
            self._lite.unsubscribe(client, names[start : start + _AT_ONCE])
            yield

    def _check_group(self, change: LiteSubscriptionChange) -> None:
        group = self._state.groups.get(change.group)
        if group is None or not group.consume_enable:
            raise RemotingError(_ILLEGAL, "Consumer group is not allowed to consume.")
        if self._lite.group(change.group).topic != change.topic:
            reason = f"group {change.group} is not bound to topic {change.topic} (lite.bind.topic)"
            raise RemotingError(_ILLEGAL, reason)

    def _begin(self, change: LiteSubscriptionChange) -> Callable[[str], int | None]:
        option, lite = change.offset_option or LiteOffsetOption(), self._lite

        def begin(queue: str) -> int | None:
            if option.type == "POLICY" and option.value == _MIN:
                return 0
            if option.type == "POLICY" and option.value == _MAX:
                return lite.queues.max_offset(change.topic, queue)
            if option.type == "OFFSET" and option.value >= 0:
                return option.value
            if option.type == "TAIL_N":
                known = self._state.store.config.consumer_offsets.query(change.group, queue, 0)
                return None if known is None else max(0, known - max(0, option.value))
            return None

        return begin
