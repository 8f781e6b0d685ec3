"""Users and ACLs move between RocketMQ's broker and mqlake's, in RocketMQ's own directories."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlake.protocol.codes import RequestCode as Code
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from tests.auth.closed import ROOT, closed
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_cluster import PROVIDERS, Cluster
from tests.peer.test_acl_matrix import SETTINGS

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

ENTRIES = [
    {"resource": "Topic:t", "actions": ["Pub", "Sub"], "decision": "Allow",
     "sourceIps": ["10.0.0.0/8", "::1"]},
    {"resource": "Group:g*", "actions": ["All"], "decision": "Deny"},
    {"resource": "*", "actions": ["Get", "List"], "decision": "Allow"},
    {"resource": "Cluster:*", "actions": ["Update", "Create", "Delete"], "decision": "Allow"},
]  # fmt: skip


class Accounts:
    """Users and ACLs of one broker."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = RemotingClient(connect_timeout=100, credentials=ROOT)

    async def ask(self, code: int, fields: dict[str, str], body: object = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        answer = await self._client.request(self._address, request(code, fields, data), 100)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return json.loads(bytes(answer.body) or b"null")

    async def create(self, name: str) -> None:
        fields, subject = {"username": name}, f"User:{name}"
        body = {"username": name, "password": f"{name} password", "userType": "Normal"}
        await self.ask(Code.AUTH_CREATE_USER, fields, body)
        policies = [
            {"policyType": "Custom", "entries": ENTRIES},
            {"policyType": "Default", "entries": ENTRIES[:1]},
        ]
        body = {"subject": subject, "policies": policies}
        await self.ask(Code.AUTH_CREATE_ACL, {"subject": subject}, body)

    async def change(self, name: str) -> None:
        """Disable a user, and change its ACL."""
        fields, subject = {"username": name}, f"User:{name}"
        await self.ask(Code.AUTH_UPDATE_USER, fields, {"username": name, "userStatus": "disable"})
        changed = {"resource": "Topic:t", "actions": ["Get"], "decision": "Deny"}
        body = {"subject": subject, "policies": [{"policyType": "Custom", "entries": [changed]}]}
        await self.ask(Code.AUTH_UPDATE_ACL, {"subject": subject}, body)

    async def all(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return users, without passwords, and ACLs."""
        users = await self.ask(Code.AUTH_LIST_USER, {})
        acls = await self.ask(Code.AUTH_LIST_ACL, {})
        return (
            {each["username"]: (each["userType"], each["userStatus"]) for each in users},
            {each["subject"]: _sorted(each["policies"]) for each in acls},
        )

    async def close(self) -> None:
        await self._client.close()


def _sorted(policies: list[Any]) -> list[Any]:
    return [
        (
            policy["policyType"],
            sorted(
                (
                    each["resource"],
                    sorted(each["actions"]),
                    sorted(text.removesuffix("/128") for text in each.get("sourceIps") or []),
                    each["decision"],
                )
                for each in policy["entries"]
            ),
        )
        for policy in sorted(policies, key=lambda policy: policy["policyType"])
    ]


@pytest.mark.parametrize(
    "is_killed",
    [pytest.param(False, id="stopped", marks=pytest.mark.nightly), pytest.param(True, id="killed")],
)
def test_users_move_there_and_back(tmp_path: Path, is_killed: bool) -> None:
    for name in ("java", "store", "back"):
        (tmp_path / name).mkdir()
    try:
        java = Cluster(tmp_path / "java", tmp_path / "store", {**SETTINGS, **PROVIDERS})
        again = Cluster(tmp_path / "back", tmp_path / "again", {**SETTINGS, **PROVIDERS})
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")

    async def in_java(address: str, *, creates: bool) -> Any:
        accounts = Accounts(address)
        try:
            if creates:
                for name in ("ä b", "leaves", "changes"):
                    await accounts.create(name)
            return await accounts.all()
        finally:
            await accounts.close()

    async def in_mqlake() -> tuple[Any, Any]:
        async with closed(tmp_path / "ours", SETTINGS) as asking:
            accounts = Accounts(asking.broker.address)
            try:
                found = await accounts.all()
                await accounts.create("new")
                await accounts.change("changes")
                await accounts.ask(Code.AUTH_DELETE_USER, {"username": "leaves"})
                return found, await accounts.all()
            finally:
                await accounts.close()

    def copy(source: Path, target: Path) -> None:
        for name in ("users", "acls"):
            shutil.copytree(source / "config" / name, target / "config" / name)

    try:
        java.start()
        theirs = asyncio.run(in_java(java.broker, creates=True))
        if is_killed:
            java.kill()
        else:
            java.stop()
        copy(tmp_path / "store", tmp_path / "ours")
        found, changed = asyncio.run(in_mqlake())
        assert found == theirs
        assert set(found[0]) == {"root", "inner", "ä b", "leaves", "changes"}
        assert changed != found
        copy(tmp_path / "ours", tmp_path / "again")
        again.start()
        assert asyncio.run(in_java(again.broker, creates=False)) == changed
    finally:
        java.kill()
        again.kill()
