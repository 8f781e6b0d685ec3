"""No answer, log line, metric or text of a broker contains a password, with all that it can use."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.signature import signed
from tests.auth.closed import CLOSED, SECRETS, Asking, closed
from tests.auth.matrix import FORGER, NOBODY, SUPER, USERS, credentials, prepare
from tests.auth.requests import EXAMPLES, body_of
from tests.broker.metrics.scraping import get
from tests.leaks import leaked
from tests.remoting.proxy_protocol.headers import binary
from tests.remoting.proxy_protocol.test_servers import answer
from tests.tls.certificates import Authority

pytest.importorskip("rocksdict")

EXPORTER = "exporter-secret-5"
KEY = "key-password-6"


async def answers_of(asking: Asking) -> list[Command]:
    """Return the answers to requests of all codes, of users, of nobody and of a forger."""
    found: list[Command] = []
    users = [credentials(name) for name in (min(USERS), NOBODY, FORGER, SUPER)]
    for user in users:
        asked = [
            asking.ask(user, code, dict(example.fields), body_of(example))
            for code, example in EXAMPLES.items()
        ]
        found += await asyncio.gather(*asked)
    return found


async def through_a_proxy(port: int) -> list[Command]:
    """Return the answers to requests after headers of a proxy, of which one is cut off."""
    asked = request(RequestCode.GET_BROKER_CONFIG)
    root, forger = credentials(SUPER), credentials(FORGER)
    assert root is not None
    assert forger is not None
    header = binary("192.0.2.9", 1)
    found = [await answer(port, header, signed(asked, user)) for user in (root, forger)]
    await answer(port, header[:-1] + b"\xff", signed(asked, root))
    return [each for each in found if each is not None]


def text_of(found: Command) -> str:
    return f"{found.remark} {dict(found.fields)} {bytes(found.body).decode(errors='replace')}"


def test_nothing_shows_a_password(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.sign("server", "127.0.0.1", password=KEY)
    (tmp_path / "tls.properties").write_text(f"tls.server.keyPassword={KEY}\n")
    (tmp_path / "store" / "config" / "users").mkdir(parents=True)
    settings = {
        **CLOSED,
        "authorizationEnabled": "true",
        "proxyProtocolAddresses": "127.0.0.1",
        "metricsGrpcExporterHeader": f"authorization:{EXPORTER}",
        "tls.config.file": str(tmp_path / "tls.properties"),
        "tls.server.certPath": files.cert,
        "tls.server.keyPath": files.key,
        "slowRequestMillis": 1,
    }
    caplog.set_level(logging.DEBUG)

    async def run() -> None:
        async with closed(tmp_path / "store", settings) as asking:
            broker = asking.broker
            await prepare(broker.address)
            texts = [text_of(each) for each in await answers_of(asking)]
            port = int(broker.address.rpartition(":")[2])
            texts += [text_of(each) for each in await through_a_proxy(port)]
            texts.append((await get(broker.broker, "/metrics")).body.decode())
            texts += [repr(broker.broker.settings), str(broker.state.access)]
            assert len(texts) > 4 * len(EXAMPLES)
            for text in (*texts, caplog.text):
                assert not [each for each in (*SECRETS, EXPORTER, KEY) if each in text]
                assert leaked(text) is None

    asyncio.run(run())
    assert (tmp_path / "store" / "config" / "users" / "CURRENT").exists()
    assert "[AUTHENTICATION]" in caplog.text
