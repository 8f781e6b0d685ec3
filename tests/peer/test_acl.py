"""The real Java client and administrator sign their requests to mqlake's broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mqlake.broker.broker import Broker
from mqlake.spark.launch import QUICK_START
from mqlake.testing import broker
from tests.auth.closed import CLOSED, ROOT
from tests.peer.java_build import JavaMissingError, build
from tests.peer.java_start import java
from tests.peer.rocketmq_client import NEWEST

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parent / "rocketmq_acl"
CLIENT = Path(__file__).parent / "rocketmq_client"
MQADMIN = "org.apache.rocketmq.tools.command.MQAdminStartup"
NOTHING = "no matched policies."


async def address(found: Broker) -> str:
    return found.settings.broker_address


@pytest.mark.parametrize(
    "serialization", ["ROCKETMQ", pytest.param("JSON", marks=pytest.mark.nightly)]
)
def test_java_signs_and_may_do_what_it_was_granted(tmp_path: Path, serialization: str) -> None:
    try:
        path = build(SOURCE, NEWEST)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    with broker(**CLOSED, authorizationEnabled="true", brokerName="a") as running:
        properties = {
            "user.home": tmp_path,
            "rocketmq.client.logUseSlf4j": "false",
            "rocketmq.serialize.type": serialization,
            "rocketmq.client.rebalance.waitInterval": 1000,
        }
        options = ["-Xmx256m", *QUICK_START, *(f"-D{n}={v}" for n, v in properties.items())]
        given = [running.name_server, running.call(address), ROOT.access_key, ROOT.secret_key]
        done = subprocess.run(
            java(path, options, "Signed", *given),
            capture_output=True,
            text=True,
            check=False,
            timeout=540,
        )
    assert done.returncode == 0, done.stderr
    outcomes = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    where = "User:java-user has no permission to access Topic:Another from 127.0.0.1"
    assert {step: outcome.partition("  BROKER:")[0] for step, outcome in outcomes.items()} == {
        "user": "java-user Normal enable",
        "users": "3",
        "acl": (
            "User:java-user Custom [Topic:JavaOrders[Pub, Sub]Allow[127.0.0.0/8], "
            "Group:java-readers[Sub]Allow[127.0.0.0/8]]"
        ),
        "acls": "1",
        "send": "SEND_OK",
        "batch": "SEND_OK",
        "commit": "SEND_OK",
        "consume": "[five, four ä😀, one, three, two]",
        "again": "true",
        "wrong key": "16 check signature failed.",
        "nobody": "16 username cannot be null.",
        "another topic": f"16 {where}, {NOTHING}",
        "deleted": "16 User:java-user is not found.",
    }


def test_mqadmin_signs_as_its_file_says(tmp_path: Path) -> None:
    try:
        path = build(CLIENT, NEWEST)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    for name, secret in (("root", ROOT.secret_key), ("forger", "wrong-password")):
        conf = tmp_path / name / "conf"
        conf.mkdir(parents=True)
        (conf / "tools.yml").write_text(f"accessKey: root\nsecretKey: {secret}\n")
        (conf / "rmq.tools.logback.xml").write_text("<configuration/>")
    settings = {**CLOSED, "authorizationEnabled": "true", "brokerName": "a"}
    with broker(**settings) as running:
        at = ["-b", running.call(address), "-n", running.name_server]

        def run(name: str, *command: str) -> str:
            options = ["-Xmx256m", *QUICK_START, f"-Drocketmq.home.dir={tmp_path / name}"]
            options.append(f"-Duser.home={tmp_path}")
            words = java(path, options, MQADMIN, *command, *at)
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
            return done.stdout + done.stderr

        add = ["createUser", "-u", "seven", "-p", "seven-password"]
        assert "check signature failed" in run("forger", *add)
        assert "success" in run("root", *add)
        users = run("root", "listUser")
        assert "seven" in users
        assert "seven-password" not in users  # RocketMQ's broker shows it.
