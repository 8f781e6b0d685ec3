"""One connection while its script is played."""

from __future__ import annotations

import random
from typing import Final

from tests.broker.lane.mixed.client import MUCH, Client, Tls
from tests.broker.lane.mixed.script import OPEN, Line, Step

_LITTLE: Final = 700
"""Bytes that a slow client reads at a time."""
_RECORD: Final = 1 << 14


class Speaker:
    """Sends what a line has, step by step.

    Attributes:
        client: the connection.
        line: what it sends, and how.
    """

    def __init__(self, client: Client, line: Line) -> None:
        self.client, self.line = client, line
        self._left = line.stream
        self._is_ending = self._shuts = False
        self._first = len(line.asked[0].frame)

    def shake(self) -> bool:
        """Continue the handshake; return whether data can be sent."""
        data, is_ready = self.client.seal.step()
        self.client.pending += data
        self.client.push()
        if not is_ready:
            self.client.pull()
        return is_ready

    def greet(self) -> None:
        """Send the first request."""
        data, self._left = self._left[: self._first], self._left[self._first :]
        self.client.write(data, _RECORD)
        self.client.push()

    def take(self, step: Step) -> None:
        """Do a step."""
        data, self._left = self._left[: step.size], self._left[step.size :]
        self.client.write(data, step.record)
        self.client.push(step.push)

    def read(self, *, is_last: bool = False) -> int:
        """Receive what the client reads now; return how much that was."""
        reads = self.line.reads
        if reads == "late" and not is_last:
            return 0
        return self.client.pull(_LITTLE if reads == "little" else MUCH)

    def end(self, dice: random.Random) -> None:
        """Begin to end the connection as the line says; what is left is sent before."""
        client, end = self.client, self.line.end
        if end == "surprise":
            self._surprise(dice)
            return
        client.write(self._left, dice.choice((_RECORD, 500)))
        self._left = b""
        self._is_ending, self._shuts = True, end not in (OPEN, "notify")
        pending = client.pending
        match end:
            case "half" | "notify":
                pending += client.seal.end()
            case "cut":
                del pending[-dice.randrange(1, 40) :]
            case "flipped" if pending:
                pending[-dice.randrange(1, min(len(pending), 300) + 1)] ^= 1 << dice.randrange(8)
            case "clear text":
                pending += self.line.asked[0].frame[: dice.randrange(5, 400)]
            case "reset":
                client.push(dice.randrange(1, len(pending) + 2))
                client.reset()
            case _:
                pass

    def _surprise(self, dice: random.Random) -> None:
        """Let the server find what no library sends, with data before and after it."""
        seal, client = self.client.seal, self.client
        assert isinstance(seal, Tls)
        assert seal.forged is not None
        at = dice.randrange(len(self._left) + 1)
        client.write(self._left[:at], _RECORD)
        for _ in range(dice.choice((1, 1, 3))):
            client.pending += seal.forged.surprise()
        client.write(self._left[at:], _RECORD)
        # The client's library takes the answer to the second handshake for the end.
        self._is_ending, self._shuts = True, self.line.way == "TLS 1.2"

    def push(self) -> int:
        """Send what can be sent; return how much that was."""
        sent = self.client.push()
        if self._shuts and not self.client.pending:
            self._shuts = False
            self.client.shut()
        return sent

    @property
    def is_done(self) -> bool:
        """Whether all has arrived that may arrive."""
        if self.client.is_over:
            return True
        return self.keeps_open and len(self.client.answers) >= self.wanted

    @property
    def keeps_open(self) -> bool:
        """Whether the connection is to live until all is answered."""
        line = self.line
        return line.end == OPEN or (line.end, line.way) == ("surprise", "TLS 1.3")

    @property
    def wanted(self) -> int:
        """How many requests have answers."""
        return sum(each.is_answered for each in self.line.asked)
