"""`rocketmqs://` URLs: all connections of a transport use TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kombu import Connection

import mqlake.kombu  # noqa: F401 (registers the schemes)
from mqlake.errors import MqlakeError
from mqlake.kombu.blocking_connection import BlockingConnection
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.tls.options import ClientTls, Verify
from mqlake.testing import RunningBroker, broker
from tests.tls.certificates import Authority

PATIENCE = 200.0


@pytest.fixture(scope="module")
def running(authority: Authority) -> Iterator[RunningBroker]:
    with broker(**authority.settings()) as running:
        yield running


def test_messages_arrive(running: RunningBroker, authority: Authority) -> None:
    url, given = f"rocketmqs://{running.name_server}", {"ca_certs": authority.ca}
    with Connection(url, ssl=given, connect_timeout=PATIENCE) as connection:
        queue = connection.SimpleQueue("jobs")
        bodies = [f"{number}" * 3 for number in range(20)]
        for body in bodies:
            queue.put(body)
        found = []
        while len(found) < len(bodies):
            message = queue.get(timeout=PATIENCE)
            found.append(message.payload)
            message.ack()
        assert sorted(found) == sorted(bodies)
        queue.close()


def test_without_tls_nothing_is_reached(running: RunningBroker) -> None:
    connection = Connection(f"rocketmq://{running.name_server}", connect_timeout=PATIENCE)
    with pytest.raises(MqlakeError):
        connection.connect()


def test_a_blocking_connection(running: RunningBroker, authority: Authority) -> None:
    tls = ClientTls(ca=authority.ca)
    with BlockingConnection(running.address, PATIENCE, tls) as connection:
        for _ in range(3):
            assert connection.is_usable
            answer = connection.request(request(RequestCode.GET_BROKER_RUNTIME_INFO))
            assert answer.code == ResponseCode.SUCCESS
        assert connection.is_usable


@pytest.mark.parametrize("tls", [ClientTls(), ClientTls(verify=Verify.CA)])
def test_strange_authorities_are_refused(running: RunningBroker, tls: ClientTls) -> None:
    with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
        BlockingConnection(running.address, PATIENCE, tls)


def test_a_connection_that_the_broker_has_closed_is_not_usable(authority: Authority) -> None:
    with broker(**authority.settings()) as running:
        connection = BlockingConnection(running.address, PATIENCE, ClientTls(ca=authority.ca))
        assert connection.is_usable
    with connection:
        assert not connection.is_usable
