"""The section of docs/reliability.md."""

from __future__ import annotations

import datetime as dt
import ssl

from tests.reliability import machine, versions, write_section
from tests.tls.handshakes.run import STALL, Outcome

_TOP = """\
Written by `python -m tests.tls.handshakes --nightly`.

A server accepts TLS 1.2 and 1.3 from clients with a certificate of its authority, directly and
behind a proxy. The bytes of a client with such a certificate are changed on their way: its first
message, its certificate and keys, what it encrypts, and the proxy's header before them; messages of
other handshakes are put in their place. Others come without a certificate, with one of another
authority, or with one of which a bit is changed.

A violation is a request that reaches a handler although no client with a right certificate has sent
exactly that; a header whose sender may not send it, or another client than it names; an exception
or an error in the log; a connection that is left; an honest client that is not served;"""


def write(outcome: Outcome, seed: int, seconds: float) -> None:
    """Write the section."""
    total, wrong = sum(outcome.counts.values()), len(outcome.violations)
    day = dt.datetime.now(tz=dt.UTC).date()
    rows = [f"| {kind} | {count:,} |" for kind, count in outcome.counts.items()]
    lines = [
        *_TOP.splitlines(),
        f"or an attack that costs more than {1000 * STALL:.0f} ms of processor time.",
        "",
        f"**{total:,} connections, {wrong:,} violations**, on {day}.",
        "",
        f"Seeds from {seed}; {seconds / 60:.1f} minutes on {machine()}.",
        f"{versions()}, {ssl.OPENSSL_VERSION}.",
        "",
        "| kind | connections |",
        "| --- | ---: |",
        *rows,
        "",
        f"{outcome.honest:,} honest clients were served between them.",
        f"The longest attack cost {1000 * outcome.longest:.1f} ms, the client's part included.",
    ]
    write_section("Mutated TLS handshakes", lines)
