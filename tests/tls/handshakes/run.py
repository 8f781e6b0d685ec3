"""Run attacks, and count what was wrong."""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mqlake.protocol.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from mqlake.remoting.tls.options import ClientAuth, ServerTls, TlsMode
from mqlake.store.bounds import networks
from tests.tls.certificates import Authority
from tests.tls.handshakes.clients import HOST, Clients
from tests.tls.handshakes.kinds import ECHO, KINDS, PROXY, Target, right
from tests.tls.handshakes.link import Loop

STALL = 0.1
"""Seconds of processor time that one attack may cost, the client's part included."""
_HONEST = 20
"""One honest client to so many attacks."""


@dataclass
class Outcome:
    """What happened.

    Attributes:
        counts: attacks by kind.
        honest: honest clients, all of whom must be served.
        longest: processor time of the longest attack, in seconds.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    honest: int = 0
    longest: float = 0.0
    violations: list[str] = field(default_factory=list[str])


class _Faults(logging.Handler):
    """Notes what mqlake logs as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


def run(count: int, seed: int, progress: Callable[[int], object] = lambda _: None) -> Outcome:
    """Run so many attacks; each is repeated by its seed, which counts up."""
    faults, log = _Faults(), logging.getLogger("mqlake")
    propagates, log.propagate = log.propagate, False
    log.addHandler(faults)
    try:
        with tempfile.TemporaryDirectory() as directory:
            loop = Loop()
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                return runner.run(_run(loop, Path(directory), count, seed, faults, progress))
    finally:
        log.removeHandler(faults)
        log.propagate = propagates


async def _run(
    loop: Loop,
    directory: Path,
    count: int,
    seed: int,
    faults: _Faults,
    progress: Callable[[int], object],
) -> Outcome:
    authority, outcome = Authority(directory), Outcome()
    target, names = Target(loop, Clients(directory, authority)), list(KINDS)
    server = _server(authority, target)
    await server.start(HOST, 0)
    try:
        for number in range(count):
            kind = names[(seed + number) % len(names)]
            wrong = await _one(target, kind, seed + number, outcome)
            if number % _HONEST == 0:
                outcome.honest += 1
                wrong = wrong or await right(target, random.Random(seed + number))
            wrong = wrong or "; ".join(loop.faults + faults.found)
            if server.peers:
                wrong = wrong or f"{len(server.peers)} connections are left"
            if wrong:
                outcome.violations.append(f"{kind}, seed {seed + number}: {wrong}")
                loop.faults.clear()
                faults.found.clear()
            if number % 1000 == 0:
                progress(number)
    finally:
        await server.stop()
    return outcome


async def _one(target: Target, kind: str, seed: int, outcome: Outcome) -> str:
    """Return what was wrong with one attack."""
    outcome.counts[kind] += 1
    begin = time.process_time()
    try:
        wrong = await KINDS[kind](target, random.Random(seed))
    except Exception as error:  # noqa: BLE001 (whatever it is, it must not happen)
        wrong = "".join(traceback.format_exception(error))
    took = time.process_time() - begin
    outcome.longest = max(outcome.longest, took)
    if took > STALL:
        wrong = wrong or f"it took {took:.3f} s"
    return wrong


def _server(authority: Authority, target: Target) -> RemotingServer:
    """Return a server that serves clients with a certificate, perhaps behind a proxy."""
    files = authority.sign("server", HOST)
    options = ServerTls(
        mode=TlsMode.ENFORCING,
        cert=files.cert,
        key=files.key,
        ca=authority.ca,
        client_auth=ClientAuth.REQUIRE,
    )

    def echo(peer: Peer, asked: Command) -> Command:
        target.served.append((peer.address, asked))
        return response(asked, body=asked.body)

    return RemotingServer([Route(ECHO, echo)], tls=options, proxies=networks(PROXY[0]))
