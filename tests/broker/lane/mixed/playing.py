"""Play a script against a broker."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mqlake.formats.record import Record
from mqlake.protocol.command import Command
from tests.broker.lane.mixed.client import LITTLE, MUCH, Clear, Client, Seal, Tls
from tests.broker.lane.mixed.forged_tls import CIPHER_1_2
from tests.broker.lane.mixed.requests import QUEUES, TOPIC
from tests.broker.lane.mixed.script import Line, Script
from tests.broker.lane.mixed.speaker import Speaker
from tests.broker.running import PATIENCE, Running
from tests.until import until

_VERSIONS: Final = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}
_IDLE: Final = 10
"""Rounds of the event loop in which nothing arrives, after which its threads get some time."""
_A_READ: Final = 1000


class Found(NamedTuple):
    """What has come of one connection.

    Attributes:
        answers: in the order of their arrival.
        address: of the client, as messages should have it.
        is_whole: whether all requests were answered.
    """

    answers: list[Command]
    address: str
    is_whole: bool


class Outcome(NamedTuple):
    """What has come of a script: of each connection, and of each queue.

    Attributes:
        first: the queue offset of the first message of each queue.
        stored: the messages of each queue.
    """

    found: list[Found]
    first: list[int]
    stored: list[list[Record]]


class Player:
    """Plays scripts against one broker.

    Args:
        ca: the file with the certificate of the broker's authority.
        directory: for the keys of connections.

    Attributes:
        seen: what has happened, and how often.
    """

    def __init__(self, broker: Running, ca: str, directory: Path) -> None:
        self._broker, self._ca, self._directory = broker, ca, directory
        self.seen = Counter[str]()
        self._port = int(broker.address.rpartition(":")[2])
        self._contexts = {way: self._context(way) for way in _VERSIONS}
        server: Any = broker.broker
        self._lane: Any = server._server._shared.direct
        self._listening = _listening(server._server, self._port)

    def close(self) -> None:
        self._listening.close()

    async def play(self, script: Script) -> Outcome:
        """Play a script; return what has come of it."""
        first = [self._end_of(place) for place in range(QUEUES)]
        peers, dice = len(self._broker.broker.peers), random.Random(script.seed)
        speakers: list[Speaker] = []
        try:
            async with asyncio.timeout(PATIENCE):
                await self._speak(speakers, script, dice)
        finally:
            for each in speakers:
                each.client.close()
        found = [
            Found(
                each.client.answers,
                _client_of(each.line) or each.client.address,
                each.keeps_open and len(each.client.answers) == each.wanted,
            )
            for each in speakers
        ]
        marks = self._broker.state.store.watermarks
        await until(lambda: len(self._broker.broker.peers) <= peers)
        await until(lambda: marks.dispatched == marks.end)
        return Outcome(found, first, [self._records(place, at) for place, at in enumerate(first)])

    async def _speak(self, speakers: list[Speaker], script: Script, dice: random.Random) -> None:
        for line in script.lines:
            speakers.append(self._open(line))
            await self._begin(speakers[-1])
        for step in script.steps:
            for place in step.places:
                speakers[place].take(step)
            for _ in range(step.rounds):
                await asyncio.sleep(0)
                for each in speakers:
                    each.read()
            self._do(step.then, dice)
            self._look()
        for each in speakers:
            each.end(dice)
        await self._finish(speakers)

    def _context(self, way: str, keys: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca)
        context.minimum_version = context.maximum_version = _VERSIONS[way]
        if keys is not None:
            context.keylog_filename = str(keys)
            context.set_ciphers(CIPHER_1_2)
        return context

    def _seal(self, line: Line) -> Seal:
        if line.way == "clear":
            return Clear()
        if line.end != "surprise":
            return Tls(self._contexts[line.way])
        keys = self._directory / "keys"
        keys.unlink(missing_ok=True)
        return Tls(self._context(line.way, keys), forges=True)

    def _open(self, line: Line) -> Speaker:
        is_slow = line.reads != "at once"
        # A connection inherits the size of its buffer.
        size = LITTLE if is_slow else MUCH
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        client = Client(self._port, self._seal(line), is_slow=is_slow)
        client.pending += line.header
        return Speaker(client, line)

    async def _begin(self, speaker: Speaker) -> None:
        """Shake hands; if the connection is warm, its first request is answered."""
        client, line = speaker.client, speaker.line
        idle = 0
        while not speaker.shake():
            idle = await _round(idle)
        if not line.is_warm:
            return
        speaker.greet()
        while line.asked[0].is_answered and not client.answers:
            idle = await _round(idle)
            client.pull()
            assert not client.is_over, "the first request was not answered"

    async def _finish(self, speakers: Sequence[Speaker]) -> None:
        """Send and receive what is left. Who reads late does so once all others are done."""
        idle = 0
        while not all(each.is_done for each in speakers):
            is_last = all(each.is_done or each.line.reads == "late" for each in speakers)
            moved = sum(each.push() + each.read(is_last=is_last) for each in speakers)
            self._look()
            idle = await _round(0 if moved else idle)

    # What the broker does

    def _do(self, what: str, dice: random.Random) -> None:
        lane = self._lane
        chosen = dice.random()
        if lane is None or not what or lane._kernel is None:
            return
        if what == "clear":
            lane.clear()
        elif what == "sweep":
            lane._pass_on_old(lane._kernel, -1.0)
        elif peers := list(lane._seats):
            peers[int(chosen * len(peers))].inlet.read_indirectly()

    def _look(self) -> None:
        """Count what can be seen now."""
        self.seen["choked"] += any(peer.is_choked for peer in self._broker.broker.peers)
        lane = self._lane
        if lane is not None and lane._kernel is not None:
            self.seen["rests"] += bool(len(lane._kernel.rests))
            kinds = {peer.is_secure for peer in lane._seats}
            self.seen["with TLS"] += True in kinds
            self.seen["both"] += len(kinds) == 2

    # What is stored

    def _end_of(self, queue_id: int) -> int:
        return self._broker.state.store.reads.queue(TOPIC, queue_id).max_offset

    def _records(self, queue_id: int, at: int) -> list[Record]:
        found: list[Record] = []
        get = self._broker.state.store.get
        while records := get(TOPIC, queue_id, at + len(found), _A_READ).records:
            found += records
        return found


async def _round(idle: int) -> int:
    """Let the event loop turn once; return how often it has done so in vain, plus 1."""
    await asyncio.sleep(0 if idle < _IDLE else 0.001)
    return idle + 1


def _client_of(line: Line) -> str:
    """Return the client that a proxy names; "" without a proxy."""
    if not line.header:
        return ""
    if line.header.startswith(b"PROXY"):
        return f"{line.header.split()[2].decode()}:5000"
    return f"{'.'.join(str(each) for each in line.header[16:20])}:5000"


def _listening(server: Any, port: int) -> socket.socket:
    """Return a server's socket for a port."""
    for each in server._servers:
        for one in each.sockets:
            if one.getsockname()[1] == port:
                return socket.socket(fileno=os.dup(one.fileno()))
    raise AssertionError("the broker does not listen")
