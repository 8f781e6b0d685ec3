"""What must be true of a script that was played, and what two brokers must have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mqlake.formats.message_id import decode_message_id
from mqlake.formats.record import Record
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from tests.broker.lane.mixed.playing import Found, Outcome
from tests.broker.lane.mixed.requests import Asked
from tests.broker.lane.mixed.script import Line, Script
from tests.broker.pull.pulls import pulled

_ADDRESS: Final = re.compile(r"127\.0\.0\.1:\d+")
"""Of a client, whose port is another one each time."""


def wrong(script: Script, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong with what one broker has answered and stored."""
    for place, (line, found) in enumerate(zip(script.lines, outcome.found, strict=True)):
        own = [each for each in outcome.stored[place] if each.body.startswith(line.own)]
        if not script.is_damaged and len(own) != len(outcome.stored[place]):
            yield f"connection {place}: its queue has messages of others"
        if line.end != "damaged":
            for each in _of_line(line, found, own):
                yield f"connection {place} ({line.way}, {line.end}): {each}"


def _of_line(line: Line, found: Found, stored: list[Record]) -> Iterator[str]:
    asked = {each.opaque: each for each in line.asked}
    opaques = [each.opaque for each in found.answers]
    if set(opaques) - asked.keys():
        yield f"answers to requests of others: {sorted(set(opaques) - asked.keys())}"
        return
    if len(set(opaques)) < len(opaques):
        yield "a request was answered twice"
    if {each.born_host for each in stored} - {found.address}:
        yield f"messages are of {stored[0].born_host}, not of {found.address}"
    yield from _of_order(line, found, stored)
    yield from _of_promises(asked, found, stored)
    if found.is_whole:
        yield from _of_all(line, found, stored)


def _of_order(line: Line, found: Found, stored: list[Record]) -> Iterator[str]:
    """What is stored is in the order of the requests, each message once."""
    places = {body: number for number, body in enumerate(_bodies(line))}
    order = [places.get(each.body, -1) for each in stored]
    if order != sorted(set(order)) or -1 in order:
        yield f"stored is {order}"
    accepted = [each.opaque for each in found.answers if _offset(each) is not None]
    if accepted != sorted(accepted):
        yield f"sends were answered in the order {accepted}"


def _of_promises(asked: dict[int, Asked], found: Found, stored: list[Record]) -> Iterator[str]:
    """What was acknowledged is stored, where the answer says."""
    at = {each.queue_offset: each for each in stored}
    for answer in found.answers:
        offset, bodies = _offset(answer), asked[answer.opaque].bodies
        if offset is None:
            continue
        records = [at.get(offset + number) for number in range(len(bodies))]
        if tuple(each and each.body for each in records) != bodies:
            yield f"{answer.opaque} was acknowledged, but {records} is at {offset}"
        elif records[0] is not None:
            message = decode_message_id(answer.fields["msgId"].partition(",")[0])[1]
            if message != records[0].physical_offset:
                yield f"{answer.opaque} has the message {message}"


def _of_all(line: Line, found: Found, stored: list[Record]) -> Iterator[str]:
    """What was not acknowledged, although it was answered, is not stored."""
    accepted = {each.opaque for each in found.answers if _offset(each) is not None}
    accepted |= {each.opaque for each in line.asked if not each.is_answered}
    expected = [body for each in line.asked if each.opaque in accepted for body in each.bodies]
    bodies = [each.body for each in stored]
    one_way = {body for each in line.asked if not each.is_answered for body in each.bodies}
    if [each for each in bodies if each not in one_way] != [
        each for each in expected if each not in one_way
    ]:
        yield "what is stored is not what was acknowledged"


def differences(script: Script, one: Outcome, other: Outcome) -> Iterator[str]:
    """Yield what one broker has answered or stored otherwise than the other one.

    Requests before the end of a connection may be answered, or not. Those that both have answered
    have the same answers.
    """
    for place, line in enumerate(script.lines):
        found = one.found[place], other.found[place]
        firsts = [None if script.is_damaged else each.first[place] for each in (one, other)]
        answers = [
            {each.opaque: _of_answer(each, line, first) for each in of_one.answers}
            for of_one, first in zip(found, firsts, strict=True)
        ]
        name = f"connection {place} ({line.way}, {line.end})"
        for opaque in sorted(answers[0].keys() & answers[1].keys()):
            if answers[0][opaque] != answers[1][opaque]:
                yield f"{name}: {answers[0][opaque]} is {answers[1][opaque]} of the other broker"
        if line.end == "damaged":
            continue
        if found[0].is_whole != found[1].is_whole:
            counts = [len(each.answers) for each in found]
            yield f"{name}: {counts[0]} answers are {counts[1]} of the other broker"
        bodies = [
            [each.body for each in of_one.stored[place] if each.body.startswith(line.own)]
            for of_one in (one, other)
        ]
        if found[0].is_whole and bodies[0] != bodies[1]:
            yield f"{name}: {len(bodies[0])} stored messages are {len(bodies[1])} others"


def _of_answer(answer: Command, line: Line, first: int | None) -> tuple[Any, ...]:
    offset = _offset(answer)
    place = None if offset is None or first is None else offset - first
    pulls = {each.opaque for each in line.asked if each.is_pull}
    messages: list[Any] = []
    if answer.opaque in pulls and answer.code == ResponseCode.SUCCESS:
        messages = [(each.queue_offset, each.body) for each in pulled(answer).records]
    queue = answer.fields.get("queueId") or ""
    remark = _ADDRESS.sub("", answer.remark or "")
    return answer.opaque, answer.code, remark, queue, str(place), repr(messages)


def _offset(answer: Command) -> int | None:
    """Return the queue offset in the answer to a send that was accepted."""
    found = answer.fields.get("queueOffset")
    if answer.code != ResponseCode.SUCCESS or found is None:
        return None
    return int(found)


def _bodies(line: Line) -> list[bytes]:
    return [body for each in line.asked for body in each.bodies]
