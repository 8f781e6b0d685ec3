"""`rocketmqs://` URLs: all connections of a transport use TLS."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from kombu import Connection, Exchange, Queue

import mqlake.kombu  # noqa: F401 (registers the schemes)
from mqlake.admin.acls import Grant
from mqlake.client import Credentials
from mqlake.client.access import ClientAccess
from mqlake.errors import MqlakeError
from mqlake.kombu.blocking_connection import BlockingConnection
from mqlake.kombu.errors import RequestRefusedError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.tls.options import ClientTls, Verify
from mqlake.testing import RunningBroker, broker
from tests.auth.users import closed_broker, create_user
from tests.kombu.receiving import Received, consume, publish
from tests.tls.certificates import Authority

PATIENCE = 200.0


@pytest.fixture(scope="module")
def running(authority: Authority) -> Iterator[RunningBroker]:
    with broker(**authority.settings()) as running:
        yield running


def test_messages_are_published_and_consumed_over_tls(
    running: RunningBroker, authority: Authority
) -> None:
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


def test_a_connection_without_tls_to_a_tls_server_fails(running: RunningBroker) -> None:
    connection = Connection(f"rocketmq://{running.name_server}", connect_timeout=PATIENCE)
    with pytest.raises(MqlakeError):
        connection.connect()


def test_a_blocking_connection_serves_several_requests_over_tls(
    running: RunningBroker, authority: Authority
) -> None:
    tls = ClientTls(ca=authority.ca)
    with BlockingConnection(running.address, PATIENCE, ClientAccess(tls=tls)) as connection:
        for _ in range(3):
            assert connection.is_usable
            answer = connection.request(request(RequestCode.GET_BROKER_RUNTIME_INFO))
            assert answer.code == ResponseCode.SUCCESS
        assert connection.is_usable


@pytest.mark.parametrize("tls", [ClientTls(), ClientTls(verify=Verify.CA)])
def test_certificates_of_unknown_authorities_are_refused(
    running: RunningBroker, tls: ClientTls
) -> None:
    with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
        BlockingConnection(running.address, PATIENCE, ClientAccess(tls=tls))


def test_a_connection_that_the_broker_has_closed_is_not_usable(authority: Authority) -> None:
    with broker(**authority.settings()) as running:
        access = ClientAccess(tls=ClientTls(ca=authority.ca))
        connection = BlockingConnection(running.address, PATIENCE, access)
        assert connection.is_usable
    with connection:
        assert not connection.is_usable


USER = Credentials("tasks", "password-of-tasks@1")
GRANTS = (
    Grant(["Topic:*"], ["Create", "Delete", "Get", "Pub", "Sub"]),
    Grant(["Group:celery*"], ["Create", "Get", "Sub"]),
    Grant(["Group:TOOLS_CONSUMER"], ["Sub"]),
)
"""What docs/celery.md lists."""


@pytest.fixture(scope="module")
def closed(authority: Authority) -> Iterator[RunningBroker]:
    with closed_broker(authority) as running:
        create_user(running, authority, USER, *GRANTS)
        yield running


@pytest.mark.parametrize("place", ["url", "options"])
def test_a_user_with_grants_publishes_and_consumes(
    closed: RunningBroker,
    authority: Authority,
    place: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    user, options = "", dict[str, str]()
    if place == "url":
        user = f"{USER.access_key}:{quote(USER.secret_key)}@"
    else:
        options = {"access_key": USER.access_key, "secret_key": USER.secret_key}
    url = f"rocketmqs://{user}{closed.name_server}"
    with Connection(
        url, ssl={"ca_certs": authority.ca}, transport_options=options, connect_timeout=PATIENCE
    ) as connection:
        received = Received(connection)
        with consume(connection, Queue(f"jobs_{place}"), received):
            publish(connection, f"jobs_{place}", *range(3))
            received.wait(3)
        assert sorted(received.bodies) == [0, 1, 2]
        news = Exchange(f"news_{place}", type="fanout")
        for options in ({}, {"exclusive": True}):
            received = Received(connection)
            with consume(connection, Queue(f"{place}{len(options)}", news, **options), received):
                publish(connection, "", "news", exchange=news)
                received.wait(1)
    shown = caplog.text + "".join(capfd.readouterr())
    assert USER.secret_key not in shown
    assert quote(USER.secret_key) not in shown


@pytest.mark.parametrize(
    ("user", "reason"),
    [("", "username cannot be null"), ("tasks:wrong-password@", "check signature failed")],
)
def test_unsigned_requests_are_refused(
    closed: RunningBroker, authority: Authority, user: str, reason: str
) -> None:
    url = f"rocketmqs://{user}{closed.name_server}"
    with (
        Connection(url, ssl={"ca_certs": authority.ca}, connect_timeout=PATIENCE) as connection,
        pytest.raises(RequestRefusedError, match=reason) as raised,
    ):
        connection.SimpleQueue("jobs").put("one")
    assert "wrong-password" not in str(raised.value)
