"""TLS between Java's clients and mqlake's broker, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from mqlake.client import ClientTls, Message, Verify
from mqlake.client.blocking import Consumer, Producer
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.testing import RunningBroker, broker
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import NEWEST, NEWEST_4, Clients
from tests.peer.rocketmq_cluster import CALM, PATIENT, QUICK, Cluster
from tests.tls.certificates import Authority

pytestmark = pytest.mark.peer
SECURE = (*QUICK, "-Dtls.server.mode=enforcing", "-Dtls.enable=true")
CALM_CLUSTER = {**CALM, **PATIENT}


def properties(directory: Path, values: Mapping[str, object]) -> Path:
    path = directory / "tls.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return path


@pytest.fixture(scope="module")
def running(authority: Authority) -> Iterator[RunningBroker]:
    """A broker that accepts only clients with a certificate."""
    with broker(**authority.settings(client_auth=True)) as running:
        yield running


@pytest.mark.parametrize("version", [NEWEST, pytest.param(NEWEST_4, marks=pytest.mark.nightly)])
def test_javas_clients_with_a_certificate(
    running: RunningBroker, authority: Authority, tmp_path: Path, version: str
) -> None:
    # Java's clients of 4.9 do not decrypt such a key.
    password = "secret" if version == NEWEST else ""
    own = authority.sign("java", "localhost", password=password)
    file = properties(
        tmp_path,
        {
            "tls.test.mode.enable": "false",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": authority.ca,
            "tls.client.certPath": own.cert,
            "tls.client.keyPath": own.key,
            "tls.client.keyPassword": password,
        },
    )
    of_java = {"tls.enable": "true", "tls.config.file": file}
    topic, group = f"held_{version}".replace(".", "_"), f"holders_{version}".replace(".", "_")
    try:
        clients = Clients(tmp_path, version, of_java=of_java)
    except JavaMissingError as error:
        pytest.skip(str(error))
    with closing(clients):
        made = ["updateTopic", "-c", "DefaultCluster", "-t", topic, "-r", "4", "-w", "4"]
        (shown,) = clients.mqadmin(running.name_server, [made])
        assert "success" in shown
        held = clients.hold(running.name_server, topic, group, f"producers_{group}")
        assert held["client"]
        clients.let_go(running.name_server)


def test_mqlakes_clients_with_javas_broker(authority: Authority, tmp_path: Path) -> None:
    server = authority.sign("javas-server", "127.0.0.1")
    file = properties(
        tmp_path,
        {
            "tls.test.mode.enable": "false",
            "tls.server.certPath": server.cert,
            "tls.server.keyPath": server.key,
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": authority.ca,
        },
    )
    options = (*SECURE, f"-Dtls.config.file={file}")
    try:
        cluster = Cluster(tmp_path, tmp_path / "store", CALM_CLUSTER, options)
    except JavaMissingError as error:
        pytest.skip(str(error))
    cluster.start()
    try:
        _send_and_receive(cluster.names, ClientTls(ca=authority.ca))
    finally:
        cluster.kill()


@pytest.mark.nightly  # Java makes keys for its servers: ten seconds of processor time
def test_mqlakes_clients_with_javas_self_signed_certificate(tmp_path: Path) -> None:
    try:
        cluster = Cluster(tmp_path, tmp_path / "store", CALM_CLUSTER, SECURE)
    except JavaMissingError as error:
        pytest.skip(str(error))
    cluster.start()
    try:
        _send_and_receive(cluster.names, ClientTls(verify=Verify.NONE))
    finally:
        cluster.kill()


def _send_and_receive(names: str, tls: ClientTls) -> None:
    bodies = {b"%d" % number for number in range(20)} | {bytes(300_000)}
    with Producer(names, tls=tls, timeout=200.0) as producer:
        for body in bodies:
            producer.send(Message(topic="orders", body=body))
    settings = ConsumerSettings(consume_from="first")
    found = set[bytes]()
    with Consumer(names, "billing", "orders", settings=settings, tls=tls) as consumer:
        while found != bodies:
            message = consumer.receive(200)
            assert message is not None
            found.add(message.body)
            consumer.ack(message)
