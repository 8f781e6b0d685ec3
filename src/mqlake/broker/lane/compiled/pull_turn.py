"""Answer pulls in a turn of the lane: those that follow each other on one connection."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np
from numba import types

from mqlake.broker.lane import pull_layout
from mqlake.broker.lane.compiled.pull import serve_pull
from mqlake.broker.lane.compiled.rests import is_partial
from mqlake.broker.lane.compiled.sockets import QUIETLY, now, send
from mqlake.broker.lane.layout import (
    ANSWERED,
    ANSWERS_AT,
    BY_CALLER,
    CONNECTION,
    FIRST_PULL,
    FULL,
    LATE,
    NEW_USER,
    OTHER,
    POSITION,
    PULL,
    RECEIVED,
    SIGNER,
    UNSENT,
    UNSENT_AT,
    UNSENT_END,
    UNTIL,
)
from mqlake.broker.lane.pull_layout import (
    LONGEST,
    LONGEST_COUNT,
    LONGEST_OF,
    MAY_SERVE,
    REASON,
    ROOM,
    SERVED,
    SPENT,
    TOOK,
    WAITED,
)
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import load_u8, load_u16, load_word
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization

NOTHING, NEXT = -1, -3
"""Besides the reasons to return: no whole frame is left; the next one is to be looked at."""

_INT, _ADDRESS = types.int32, types.uintp
_BINARY, _JSON = int(Serialization.ROCKETMQ), int(Serialization.JSON)
_CODE = int(RequestCode.PULL_MESSAGE)
_HEADER_AT = 8
_JSON_START = np.frombuffer(b'{"code":', np.uint64)[0]
_JSON_CODE = np.frombuffer(b"%d," % _CODE, np.uint8)
_JSON_CODE_AT = _HEADER_AT + 8
_ENOUGH = 1 << 16
"""Bytes of answers that are sent before further pulls are answered: meanwhile the other side
processes them.
"""
_SHARE = 1_000_000
"""Nanoseconds of pulls that are received at once. Further ones take turns with other connections'
(`mqlake.remoting.turns`).
"""


@inlined
def is_pull(data, at, end):
    """Return whether the frame at a position, which is not partial, has the code of pulls."""
    if end - at < _JSON_CODE_AT + len(_JSON_CODE):
        return False
    kind = load_u8(data, at + 4)
    if kind == _BINARY:
        return load_u16(data, at + _HEADER_AT) == _CODE
    if kind != _JSON or load_word(data, at + _HEADER_AT) != _JSON_START:
        return False
    for place in range(len(_JSON_CODE)):
        if load_u8(data, at + _JSON_CODE_AT + place) != _JSON_CODE[place]:
            return False
    return True


@inlined
def _note(state, numbers, took, count):
    """Count pulls that were answered together, in so many nanoseconds."""
    numbers[SPENT] += took
    numbers[TOOK] += took
    numbers[WAITED] += took * count
    if took > numbers[LONGEST]:
        numbers[LONGEST], numbers[LONGEST_COUNT] = took, count
        numbers[LONGEST_OF] = state[CONNECTION]


@inlined
def _answer(state, data, time, pulls, answers):
    """Answer pulls; return (why that ends, position after the answers, how many these are)."""
    numbers, begin, end, begun = pulls.state, state[ANSWERED], state[RECEIVED], now(state, time)
    to, count, moment = begin, 0, begun
    while not is_partial(data, state[POSITION], end - state[POSITION]):
        if not is_pull(data, state[POSITION], end):
            return NEXT, to, count
        if numbers[SPENT] + moment - begun >= _SHARE:
            return OTHER, to, count
        found, state[POSITION], to = serve_pull(pulls, data, state[POSITION], end, answers, to)
        if found == ROOM:
            return (NEXT if to > begin else FULL), to, count
        if found == pull_layout.NEW_USER:
            return NEW_USER, to, count
        if found != SERVED:
            numbers[REASON] = found
            return PULL, to, count
        count += 1
        moment = now(state, time)
        if moment >= state[UNTIL]:
            return LATE, to, count
        if to - begin >= _ENOUGH:
            return NEXT, to, count
    return NOTHING, to, count


@inlined
def serve_pull_run(state, data, reader, time, pulls, answers):
    """Answer the pull at state[POSITION], and those that follow it; return why that ends.

    Their answers are sent at once, even if those to sends are withheld.

    Args:
        reader: who receives and sends over the connection: pulls of BY_CALLER are not served.
        pulls: see `PullTables`.
    """
    numbers, begin = pulls.state, state[ANSWERED]
    if reader == BY_CALLER:
        return OTHER
    if numbers[MAY_SERVE] == 0:
        return FIRST_PULL
    numbers[pull_layout.SIGNER] = state[SIGNER]
    begun = now(state, time)
    reason, to, count = _answer(state, data, time, pulls, answers)
    if count == 0:
        return reason
    size = to - begin
    sent = send(
        _INT(state[CONNECTION]), _ADDRESS(state[ANSWERS_AT] + begin), _ADDRESS(size), _INT(QUIETLY)
    )
    moment = now(state, time)
    _note(state, numbers, moment - begun, count)
    if sent < size:
        # What was not served yet comes after these answers.
        state[UNSENT_AT], state[UNSENT_END] = begin + max(sent, 0), to
        return UNSENT
    return LATE if reason == NEXT and moment >= state[UNTIL] else reason
