"""What producers and consumers report about a message in the trace topic.

Upstream: `TraceDataEncoder.decoderFromTraceDataString`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlake.admin import messages
from mqlake.admin.each_broker import BrokerFailure
from mqlake.console.cluster.view import ClusterView
from mqlake.console.messages.bodies import plain_body
from mqlake.errors import MqlakeError
from mqlake.formats.topic_names import TRACE_TOPIC
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

_BETWEEN: Final = "\x01"
_END: Final = "\x02"
_MOST: Final = 64
_NO_STEPS: Final = "No client reported this message. Clients report only if tracing is on in them."
_OUTCOMES: Final = {
    "0": "consumed",
    "1": "timed out",
    "2": "exception",
    "3": "returned nothing",
    "4": "failed",
}


class TraceStep(NamedTuple):
    """A step of a message.

    Attributes:
        at: milliseconds; 0 if unknown.
        what: what happened.
        who: the group.
        took: milliseconds; empty if unknown.
        detail: more words.
    """

    at: int
    what: str
    who: str
    took: str
    detail: str


async def trace_of(view: ClusterView, message_id: str) -> tuple[list[TraceStep], str]:
    """Return the steps of a message by time, and the reason if nothing is known."""
    try:
        silent: list[BrokerFailure] = []
        found = await messages.by_key(view.admin, TRACE_TOPIC, message_id, _MOST, missing=silent)
    except MqlakeError as error:
        if isinstance(error, RemotingError) and error.code == ResponseCode.TOPIC_NOT_EXIST:
            return [], _NO_STEPS
        return [], f"The trace topic cannot be read: {error}"
    steps = [
        step
        for record in found
        for step in steps_in(plain_body(record)[0].decode("utf-8", "replace"), message_id)
    ]
    if not steps and silent:
        return [], silent[0].missing("steps of this message may be missing")
    if not steps:
        return [], _NO_STEPS
    return sorted(steps, key=lambda each: each.at), ""


def steps_in(text: str, message_id: str) -> list[TraceStep]:
    """Return the steps of one message in the body of a trace message. Others are left out."""
    found: list[TraceStep] = []
    for line in text.split(_END):
        fields = line.split(_BETWEEN)
        if message_id in fields and (step := _step(fields)) is not None:
            found.append(step)
    return found


def _step(fields: list[str]) -> TraceStep | None:
    match fields:
        case ["Pub", at, _, group, topic, _, _, _, host, size, took, *rest]:
            what = "send failed" if "false" in rest else "sent"
            return TraceStep(_number(at), what, group, took, f"to {topic} on {host}, {size} bytes")
        case ["SubBefore", at, _, group, _, _, times, *_]:
            return TraceStep(_number(at), "delivered", group, "", f"delivered {times} times before")
        case ["SubAfter", _, _, took, _, _, code, *rest]:
            at, group = (rest[0], rest[1]) if len(rest) > 1 else ("0", "")
            return TraceStep(_number(at), _OUTCOMES.get(code, f"ended ({code})"), group, took, "")
        case ["EndTransaction", at, _, group, *rest]:
            state = rest[-2] if len(rest) > 1 else ""
            return TraceStep(_number(at), "transaction ended", group, "", state)
        case ["Recall", at, _, group, *_]:
            return TraceStep(_number(at), "recalled", group, "", "")
        case _:
            return None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
