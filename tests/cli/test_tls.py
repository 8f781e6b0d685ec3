"""Options about TLS stand before the command, and apply to its connections only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.cli.access import choose, chosen
from mqlake.client import Credentials, Message
from mqlake.errors import MqlakeError
from mqlake.remoting.tls.options import ClientTls, Verify
from mqlake.testing import RunningBroker, broker
from tests.auth.closed import CLOSED, ROOT
from tests.cli.conftest import Mqlake
from tests.tls.certificates import Authority


@pytest.fixture(scope="module")
def running(authority: Authority) -> Iterator[RunningBroker]:
    with broker(**authority.settings()) as running:
        yield running


def test_commands_use_tls(
    mqlake: Mqlake, running: RunningBroker, authority: Authority, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    tls, names = ("--tls-ca", authority.ca), ("-n", running.name_server)
    sent = mqlake(*tls, "produce", "orders", lines, *names, "--json")
    assert (sent.code, json.loads(sent.out)["acknowledged"]) == (0, 2)
    found = mqlake(*tls, "tail", "orders", *names, "--from", "earliest", "--max", 2, "--json")
    bodies = [json.loads(line)["body"] for line in found.out.splitlines()]
    assert sorted(bodies) == ["one", "two"]
    listed = mqlake(*tls, "admin", "clusterList", *names, "--json")
    assert "broker-a" in listed.out


def test_clear_text_and_strange_authorities_are_refused(
    mqlake: Mqlake, running: RunningBroker
) -> None:
    command = ("admin", "clusterList", "-n", running.name_server)
    refused = mqlake(*command)
    assert (refused.code, "mqlake --tls-ca FILE" in refused.err) == (2, True)
    for options in (("--tls",), ("--tls-verify", "ca")):
        refused = mqlake(*options, *command)
        assert (refused.code, "--tls-ca FILE" in refused.err) == (2, False)
    assert mqlake("--tls-verify", "none", *command).code == 0
    assert mqlake(*command).code == 2  # The options of one command do not reach the next one.


def test_a_missing_file_is_named(mqlake: Mqlake) -> None:
    ran = mqlake("--tls-ca", "/missing/ca.pem", "admin", "clusterList", "-n", "127.0.0.1:1")
    assert (ran.code, ran.err) == (2, "mqlake: TLS: /missing/ca.pem: No such file or directory\n")


def test_a_replica_signs_its_requests_and_uses_tls(
    mqlake: Mqlake, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = authority.settings() | CLOSED | {"authorizationEnabled": "true", "brokerName": "a"}
    with broker(**closed) as running:
        root = ClientTls(ca=authority.ca)
        with running.producer(tls=root, credentials=ROOT) as producer:
            producer.send(Message(topic="orders", body=b"one"))
        command = ("replica", "--once", "-n", running.name_server)
        refused = mqlake("--tls-ca", authority.ca, *command, "a", "--store", tmp_path / "refused")
        assert refused.code == 2
        assert "username cannot be null" in refused.err
        monkeypatch.setenv("MQLAKE_ACCESS_KEY", ROOT.access_key)
        monkeypatch.setenv("MQLAKE_SECRET_KEY", ROOT.secret_key)
        for words in (
            ("createUser", "-b", "a", "-u", "copier", "-p", "copier-password"),
            ("createAcl", "-b", "a", "-s", "User:copier", "-r", "Cluster:main", "-a", "Get"),
        ):
            made = mqlake("--tls-ca", authority.ca, "admin", *words, "-n", running.name_server)
            assert made.code == 0, made.err
        monkeypatch.setenv("MQLAKE_ACCESS_KEY", "copier")
        monkeypatch.setenv("MQLAKE_SECRET_KEY", "copier-password")
        ran = mqlake("--tls-ca", authority.ca, *command, "a", "--store", tmp_path / "copy")
    assert ran.code == 0, ran.err
    found = mqlake(
        "query", tmp_path / "copy", "--topic", "orders", "--begin", 0, "--end", 1 << 50, "--json"
    )
    assert found.json["messages"][0]["body"] == "b25l"
    for shown in (refused, ran):
        assert "copier-password" not in shown.out + shown.err


def test_each_option_implies_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"tls": False, "ca": "", "cert": "", "key": "", "verify": None}
    monkeypatch.setenv("MQLAKE_TLS_KEY_PASSWORD", "secret")
    choose(**{**given, "cert": "/c", "key": "/k"})
    assert chosen().tls == ClientTls(cert="/c", key="/k", key_password="secret")
    choose(**{**given, "verify": "ca"})
    assert chosen().tls == ClientTls(verify=Verify.CA, key_password="secret")
    choose(**given)
    assert chosen().tls is None


def test_a_person_types_the_password_of_the_user_in_the_environment_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return "typed-password"

    monkeypatch.setenv("MQLAKE_ACCESS_KEY", "alice")
    monkeypatch.delenv("MQLAKE_SECRET_KEY", raising=False)
    monkeypatch.setattr("getpass.getpass", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    given = {"tls": False, "ca": "", "cert": "", "key": "", "verify": None}
    choose(**given)
    with pytest.raises(MqlakeError, match="MQLAKE_SECRET_KEY"):
        chosen()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert chosen().credentials == Credentials("alice", "typed-password")
    assert chosen().credentials == Credentials("alice", "typed-password")
    assert asked == ["Password of alice: "]
    monkeypatch.setenv("MQLAKE_SECRET_KEY", "set-password")
    assert chosen().credentials == Credentials("alice", "set-password")
    choose(**given)
    assert chosen().credentials == Credentials("alice", "set-password")
    assert len(asked) == 1
