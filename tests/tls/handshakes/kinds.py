"""The kinds of attacks. Each takes a target and a random source, and returns what was wrong."""

from __future__ import annotations

import random
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mqlake.protocol.command import Command, request
from mqlake.protocol.frames import encode
from tests.remoting.proxy_protocol.headers import any_header
from tests.tls.handshakes.clients import HOST, Clients
from tests.tls.handshakes.link import Link, Loop

ECHO = 1
CLIENT, PROXY = ("10.0.0.1", 5000), ("10.9.0.1", 5000)
"""Who may send a header of the PROXY protocol, and who may not."""
_MOST_FLIGHTS = 6


@dataclass
class Target:
    """A server that asks for certificates.

    Attributes:
        served: the requests that reached a handler, with the addresses of their clients.
        recorded: second flights of handshakes of the right client.
    """

    loop: Loop
    clients: Clients
    served: list[tuple[str, Command]] = field(default_factory=list[tuple[str, Command]])
    recorded: list[bytes] = field(default_factory=list[bytes])


Change = Callable[[int, bytes], bytes]
"""Takes the number of a flight of the client, and its bytes; returns those that arrive."""
Attack = Callable[[Target, random.Random], Awaitable[str]]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with up to eight changes."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(found)) if found else 0
        match chance.randrange(6):
            case 0 | 1 if found:
                found[at] ^= 1 << chance.randrange(8)
            case 2 if found:
                found[at] = chance.choice((0, 1, 0x14, 0x15, 0x16, 0x17, 0x7F, 0xFF))
            case 3:
                del found[at : at + chance.choice((1, 2, 5, 40))]
            case 4:
                found[at:at] = found[at : at + chance.choice((1, 5, 40, 300))]
            case _:
                found[at:at] = chance.randbytes(chance.choice((1, 2, 5, 40)))
    return bytes(found)


class Client:
    """One connection of a client, whose bytes are changed on their way."""

    def __init__(
        self, link: Link, context: ssl.SSLContext, chance: random.Random, change: Change
    ) -> None:
        self._link, self._chance, self._change = link, chance, change
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        self._flight = 0

    async def shake(self) -> bool:
        """Return whether the handshake is complete for the client."""
        for _ in range(_MOST_FLIGHTS):
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if not await self._exchange():
                    return False
            except ssl.SSLError:
                await self._exchange()  # The server learns it.
                return False
            else:
                return True
        return False

    async def ask(self, data: bytes) -> bytes:
        """Send data, with what is left of the handshake; return what is answered."""
        with suppress(ssl.SSLError):
            self._tls.write(data)
        await self._exchange()
        with suppress(ssl.SSLError):
            return self._tls.read(1 << 16)
        return b""

    async def _exchange(self) -> bool:
        """Send a flight; return whether an answer has arrived."""
        data = self._change(self._flight, self._outgoing.read())
        self._flight += 1
        answer = b""
        if self._chance.random() < 0.1:  # In two parts.
            at = self._chance.randrange(len(data) + 1)
            answer, data = await self._link.send(data[:at]), data[at:]
        answer += await self._link.send(data)
        self._incoming.write(answer)
        return bool(answer)


def unchanged(_flight: int, data: bytes) -> bytes:
    """Return the bytes of a flight as they are."""
    return data


async def attempt(
    target: Target,
    context: ssl.SSLContext,
    chance: random.Random,
    change: Change = unchanged,
    before: bytes = b"",
    address: tuple[str, int] = CLIENT,
) -> bytes:
    """Shake hands, and send a request whatever has come of it; return the request's body.

    Args:
        before: what is sent before TLS begins.
        address: from where the connection comes.
    """
    target.served.clear()
    link, body = Link(target.loop, address), chance.randbytes(8)
    client = Client(link, context, chance, change)
    try:
        if before:
            await link.send(before)
        await client.shake()
        await client.ask(encode(request(ECHO, body=body)))
    finally:
        await link.end()
    return body


def judged(target: Target, body: bytes | None, what: str) -> str:
    """Return what is wrong with what was served.

    Args:
        body: of the request that a client with a right certificate has sent; None without one.
    """
    found = [(address, bytes(each.body)) for address, each in target.served]
    if not found or (body is not None and found == [(found[0][0], body)]):
        return ""
    return f"{what}: {found} reached a handler; sent was {body!r}"


def _any(contexts: list[ssl.SSLContext], chance: random.Random) -> ssl.SSLContext:
    return contexts[chance.randrange(len(contexts))]


def _changed(number: int, chance: random.Random) -> Change:
    """Change one flight."""
    return lambda flight, data: mutated(data, chance) if flight == number else data


async def hellos(target: Target, chance: random.Random) -> str:
    """Change the first bytes of the client."""
    context = _any(target.clients.right, chance)
    return judged(target, await attempt(target, context, chance, _changed(0, chance)), "hello")


async def keys(target: Target, chance: random.Random) -> str:
    """Change its certificate, its key exchange, its signature or its last message."""
    context = _any(target.clients.right, chance)
    return judged(target, await attempt(target, context, chance, _changed(1, chance)), "keys")


async def splices(target: Target, chance: random.Random) -> str:
    """Continue a handshake with that of another connection of the right client."""
    recorded = target.recorded

    def record(flight: int, data: bytes) -> bytes:
        if flight == 1:
            recorded.append(data)
        return data

    if len(recorded) < 50:
        body = await attempt(target, _any(target.clients.right, chance), chance, record)
        return judged(target, body, "splice")

    def splice(flight: int, data: bytes) -> bytes:
        if flight == 1:
            return chance.choice(recorded) + (data if chance.random() < 0.3 else b"")
        return data if flight == 0 else chance.choice(recorded)

    await attempt(target, _any(target.clients.right, chance), chance, splice)
    return judged(target, None, "splice")


async def requests(target: Target, chance: random.Random) -> str:
    """Change what is encrypted, after an honest handshake."""
    link, body = Link(target.loop, CLIENT), chance.randbytes(8)
    is_changing = False

    def change(_flight: int, data: bytes) -> bytes:
        return mutated(data, chance) if is_changing else data

    target.served.clear()
    client = Client(link, _any(target.clients.right, chance), chance, change)
    try:
        if not await client.shake():
            return "request: an honest handshake failed"
        if chance.random() < 0.5:  # TLS 1.3's last flight of the client is then complete.
            await client.ask(encode(request(ECHO, body=body)))
            if judged(target, body, "") or not target.served:
                return "request: an honest request was not served"
            target.served.clear()
        is_changing = True
        await client.ask(encode(request(ECHO, body=body)))
    finally:
        await link.end()
    return judged(target, body, "request")


async def strangers(target: Target, chance: random.Random) -> str:
    """Come without a right certificate; change bytes as well, or nothing."""
    name = chance.choice(sorted(target.clients.wrong))
    change = _changed(chance.randrange(2), chance) if chance.random() < 0.5 else unchanged
    await attempt(target, _any(target.clients.wrong[name], chance), chance, change)
    return judged(target, None, name)


async def headers(target: Target, chance: random.Random) -> str:
    """Send a header of the PROXY protocol before TLS: a changed one, or one from a stranger."""
    header, client = any_header(chance)
    context, kind = _any(target.clients.right, chance), chance.randrange(3)
    if kind == 0:
        await attempt(target, context, chance, before=header)
        return judged(target, None, "a header of one who is no proxy")
    if kind == 1:
        body = await attempt(target, context, chance, before=header, address=PROXY)
        expected = [(client, body)]
        found = [(address, bytes(each.body)) for address, each in target.served]
        return "" if found == expected else f"header: {found} was served instead of {expected}"
    header = mutated(header, chance)
    body = await attempt(target, context, chance, before=header, address=PROXY)
    return judged(target, body, "a changed header")


KINDS: dict[str, Attack] = {
    "hellos": hellos,
    "keys": keys,
    "splices": splices,
    "requests": requests,
    "strangers": strangers,
    "headers": headers,
}
"""Each kind of attack has the same share."""


async def right(target: Target, chance: random.Random) -> str:
    """Return what is wrong with how an honest client is served."""
    body = await attempt(target, _any(target.clients.right, chance), chance)
    found: list[Any] = [bytes(each.body) for _, each in target.served]
    return "" if found == [body] else f"an honest request was not served: {found}"
