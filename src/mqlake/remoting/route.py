"""The handler of the requests of one code, and what is checked before it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.header import Header
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.stream.frame_reader import Frames

Answer = Command | bytes | None
Handler = Callable[[Peer, Command], Answer | Coroutine[Any, Any, Answer]]
"""Serves requests of one code.

A command that it returns, or its frame, is the answer. After None, a request that expects an answer
waits for `Peer.answer`. A coroutine runs as a task and returns one of these.
"""

TakeRun = Callable[[Peer, Frames], int]
"""Serves consecutive frames in one call: advances `Frames.at` past the frames that it answered, and
returns how many those were. The rest is served frame by frame."""


@dataclass(frozen=True, slots=True)
class Route:
    """How requests of one code are served.

    Attributes:
        permission: the permissions of which the client needs one; None for requests of servers to
            clients.
        header: the type that is decoded together with the frame. This is faster if a handler uses
            exactly this type.
        run: serves many frames in one call.
        run_kinds: how the headers of such frames are serialized.
        run_checks: are called before `run`; all other checks are its own work. None: all are.
    """

    code: int
    handler: Handler
    permission: Permission | None = None
    header: type[Header] | None = None
    run: TakeRun | None = None
    run_kinds: tuple[Serialization, ...] = (Serialization.ROCKETMQ,)
    run_checks: Sequence[Check] | None = None


Check = Callable[[Peer, Command, Route], None]
"""Is called before every route: raises `RemotingError` to refuse a request.

For a run, the check receives only the first frame's header. Other frames of it come over the same
connection, and may go to other topics and have other signatures: whoever serves them checks these
by itself (`run_checks`)."""
