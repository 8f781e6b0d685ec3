"""`mqlake admin` manages users and their permissions, and commands sign as the environment says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqlake.testing import RunningBroker, broker
from tests.auth.closed import CLOSED, INNER, ROOT
from tests.cli.conftest import Mqlake

SECRET = "cli-password-2"


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A closed broker."""
    with broker(**CLOSED, authorizationEnabled="true", brokerName="a") as found:
        yield found


class Admin:
    """Runs `mqlake admin` in the name of a user."""

    def __init__(self, mqlake: Mqlake, name_server: str) -> None:
        self._mqlake, self._names = mqlake, name_server
        self.shown = ""

    def __call__(self, *words: object) -> Any:
        """Return the JSON object of a command that succeeds."""
        ran = self._mqlake("admin", *words, "-n", self._names, "--json")
        assert ran.code == 0, ran.err
        self.shown += ran.out + ran.err
        return ran.json

    def fails(self, *words: object) -> str:
        """Return the error of a command that fails."""
        ran = self._mqlake("admin", *words, "-n", self._names)
        assert ran.code == 2, ran.out
        assert ran.err.count("\n") == 1
        self.shown += ran.out + ran.err
        return ran.err


@pytest.fixture
def admin(
    mqlake: Mqlake, running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Admin]:
    """Commands in the name of the super user."""
    sign(monkeypatch, ROOT.access_key, ROOT.secret_key)
    found = Admin(mqlake, running.name_server)
    yield found
    assert SECRET not in found.shown
    assert ROOT.secret_key not in found.shown


def sign(monkeypatch: pytest.MonkeyPatch, access: str, secret: str) -> None:
    monkeypatch.setenv("MQLAKE_ACCESS_KEY", access)
    monkeypatch.setenv("MQLAKE_SECRET_KEY", secret)


def test_users(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    (changed,) = admin("createUser", "-b", "a", "-u", "bob", "-p", SECRET)["changed"]
    assert changed["brokerName"] == "a"
    assert "existed" in admin.fails("createUser", "-b", "a", "-u", "bob", "-p", SECRET)
    monkeypatch.setenv("MQLAKE_USER_PASSWORD", SECRET)
    admin("createUser", "-c", "main", "-u", "carol", "-t", "Super")
    bob = {"brokerName": "a", "username": "bob", "userType": "Normal", "userStatus": "enable"}
    assert admin("getUser", "-b", "a", "-u", "bob") == {"users": [bob]}
    assert admin("getUser", "-b", "a", "-u", "nobody") == {"users": []}
    admin("updateUser", "-b", "a", "-u", "bob", "-s", "disable")
    found = admin("listUser", "-b", "a", "-f", "o")["users"]
    assert [user["username"] for user in found] == ["root", "bob", "carol"]
    assert [user["userStatus"] for user in found] == ["enable", "disable", "enable"]
    monkeypatch.delenv("MQLAKE_USER_PASSWORD")
    assert "MQLAKE_USER_PASSWORD" in admin.fails("createUser", "-b", "a", "-u", "dave")
    assert "give what to change" in admin.fails("updateUser", "-b", "a", "-u", "bob")
    assert "name the target" in admin.fails("listUser")
    for name in ("bob", "carol"):
        admin("deleteUser", "-b", "a", "-u", name)
    assert admin("listUser", "-b", "a", "-f", "bob") == {"users": []}


def test_acls(admin: Admin) -> None:
    admin("createUser", "-b", "a", "-u", "erin", "-p", SECRET)
    admin(
        "createAcl", "-b", "a", "-s", "User:erin", "-r", "Topic:t, Group:g*", "-a", "Pub,Sub",
        "-i", "10.0.0.0/8,::1",
    )  # fmt: skip
    admin("updateAcl", "-b", "a", "-s", "User:erin", "-r", "Topic:t", "-a", "All", "-d", "Deny")
    entries = admin("getAcl", "-b", "a", "-s", "User:erin")["entries"]
    common = {"brokerName": "a", "subject": "User:erin", "policyType": "Custom"}
    assert entries == [
        {
            **common,
            "resource": "Topic:t",
            "actions": "All",
            "sourceIps": "",
            "decision": "Deny",
        },
        {
            **common,
            "resource": "Group:g*",
            "actions": "Pub,Sub",
            "sourceIps": "10.0.0.0/8,::1",
            "decision": "Allow",
        },
    ]
    assert admin("listAcl", "-b", "a", "-s", "erin", "-r", "Group")["entries"] == entries[1:]
    assert admin("copyAcl", "-f", "a", "-t", "a")["copied"] == ["User:erin"]
    admin("deleteAcl", "-b", "a", "-s", "User:erin", "-r", "Topic:t")
    assert admin("getAcl", "-b", "a", "-s", "User:erin")["entries"] == entries[1:]
    admin("deleteAcl", "-b", "a", "-s", "User:erin")
    assert admin("listAcl", "-b", "a")["entries"] == []
    assert "illegal" in admin.fails(
        "createAcl", "-b", "a", "-s", "User:erin", "-r", "Queue:t", "-a", "Pub"
    )


def test_users_are_copied_with_the_inner_credentials_only(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admin("copyUser", "-f", "a", "-t", "a")["copied"] == []
    sign(monkeypatch, INNER.access_key, INNER.secret_key)
    assert admin("copyUser", "-f", "a", "-t", "a", "-u", "root")["copied"] == []


def test_commands_sign_as_the_environment_says(
    admin: Admin, running: RunningBroker, mqlake: Mqlake, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("-n", running.name_server)
    admin("updateTopic", "-b", "a", "-t", "cli", "-r", 1, "-w", 1)
    message = ("sendMessage", "-t", "cli", "-p", "hello")
    assert admin(*message)
    assert mqlake("tail", "cli", *names, "--from", "begin", "--max", 1).code in (0, 2)
    sign(monkeypatch, "root", "wrong")
    assert "check signature failed." in admin.fails("brokerStatus", "-b", "a")
    sign(monkeypatch, "", "")
    refused = admin.fails("brokerStatus", "-b", "a")
    assert "username cannot be null. (set MQLAKE_ACCESS_KEY and MQLAKE_SECRET_KEY" in refused
    sign(monkeypatch, "root", "")
    assert "MQLAKE_SECRET_KEY" in admin.fails("brokerStatus", "-b", "a")
