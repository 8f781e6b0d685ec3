"""Brokers and name servers behind a proxy: the client's address decides, and is shown."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.frames import encode
from mqlake.protocol.signature import Credentials, signed
from tests.auth.closed import CLOSED, ROOT, closed
from tests.namesrv import asking as name_server
from tests.remoting.proxy_protocol.headers import binary, line
from tests.remoting.serving import Raw

HERE = {"proxyProtocolAddresses": "127.0.0.1"}
USER = Credentials("orders", "orders-password")


async def answer(port: int, header: bytes, command: Command) -> Command | None:
    """Return the answer to a request after a header; None if the connection is closed."""
    raw = await Raw.open(port)
    raw.writer.write(header + encode(command))
    try:
        return await raw.command()
    except (EOFError, ConnectionError):
        return None
    finally:
        await raw.close()


def test_entries_for_addresses_apply_to_the_client(tmp_path: Path) -> None:
    async def run() -> None:
        settings = {**CLOSED, **HERE, "authorizationEnabled": "true"}
        async with closed(tmp_path, settings) as asking:
            body = json.dumps({"username": USER.access_key, "password": USER.secret_key}).encode()
            fields = {"username": USER.access_key}
            await asking.ask(ROOT, RequestCode.AUTH_CREATE_USER, fields, body)
            entry = {
                "resource": "Cluster:main", "actions": ["Get"], "decision": "Allow",
                "sourceIps": ["192.0.2.0/24"],
            }  # fmt: skip
            policy = {"policyType": "Custom", "entries": [entry]}
            body = json.dumps({"subject": "User:orders", "policies": [policy]}).encode()
            made = await asking.ask(
                ROOT, RequestCode.AUTH_CREATE_ACL, {"subject": "User:orders"}, body
            )
            assert made.code == ResponseCode.SUCCESS, made.remark
            port = int(asking.broker.address.rpartition(":")[2])
            asked = signed(request(RequestCode.GET_BROKER_RUNTIME_INFO), USER)
            for header, code in (
                (line("192.0.2.9", 1), ResponseCode.SUCCESS),
                (binary("192.0.2.9", 1), ResponseCode.SUCCESS),
                (line("192.0.3.9", 1), ResponseCode.NO_PERMISSION),
                (b"", ResponseCode.NO_PERMISSION),
            ):
                found = await answer(port, header, asked)
                assert found is not None
                assert found.code == code, found.remark
            assert found.remark is not None
            assert "127.0.0.1" in found.remark

    asyncio.run(run())


@pytest.mark.parametrize("proxies", ["", "192.0.2.1", "127.0.0.0/8;::1"])
def test_a_name_server_reads_headers_of_its_proxies_only(proxies: str) -> None:
    async def run() -> None:
        async with name_server.running(proxyProtocolAddresses=proxies) as asking:
            port = asking.server.port
            asked = request(RequestCode.GET_BROKER_CLUSTER_INFO)
            assert await answer(port, b"", asked) is not None
            found = await answer(port, line("192.0.2.9", 1), asked)
            assert (found is not None) == proxies.startswith("127")

    asyncio.run(run())
