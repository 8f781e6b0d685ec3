"""Names of topics, broker URLs, transport options, delivery times."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from celery import Celery
from hypothesis import given
from hypothesis import strategies as st
from kombu import Connection

import mqlake.kombu  # noqa: F401 (registers the scheme)
from mqlake.kombu.access import access_of
from mqlake.kombu.errors import ConfigurationError
from mqlake.kombu.names import exchange_topic, queue_topic
from mqlake.kombu.payloads import delivery_time
from mqlake.kombu.settings import name_servers, transport_settings
from mqlake.protocol.naming import topic_fault
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls, Verify

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("queue", "topic"),
    [
        ("celery", "celery"),
        ("a.b@host", "a%2Eb%40host"),
        ("50%", "50%25"),
        ("%RETRY%celery", "%25RETRY%25celery"),
        ("ä|/../x", "%C3%A4%7C%2F%2E%2E%2Fx"),
    ],
)
def test_topics_of_queues(queue: str, topic: str) -> None:
    assert queue_topic(queue) == topic
    assert queue_topic(queue, "shop-") == f"shop-{topic}"


@given(st.text(max_size=12), st.sampled_from(["", "shop-"]))
def test_names_are_reversible_and_allowed(queue: str, prefix: str) -> None:
    try:
        topic = queue_topic(queue, prefix)
    except ConfigurationError:
        assert not queue or any("\ud800" <= letter <= "\udfff" for letter in queue)
        return
    assert unquote(topic.removeprefix(prefix), errors="strict") == queue
    assert topic_fault(topic) is None
    assert exchange_topic(queue, prefix) != topic


@pytest.mark.parametrize(
    ("queue", "reason"),
    [
        ("", "a name that is not empty"),
        ("x" * 128, "longer than topic max length: 127"),
        ("." * 43, "longer than topic max length: 127"),
        ("TBW102", "RocketMQ's own"),
        ("rmq_sys_x", "RocketMQ's own"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_queue_names_that_no_topic_can_have_are_refused(queue: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        queue_topic(queue)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("rocketmq://a:1", "a:1"),
        ("rocketmq://a:1/", "a:1"),
        ("rocketmq://a", "a:9876"),
        ("rocketmq://", "localhost:9876"),
        ("rocketmq://a:1;b:2/", "a:1;b:2"),
        ("rocketmq://a;b/", "a:9876;b:9876"),
        (["rocketmq://a:1", "rocketmq://b:2/"], "a:1;b:2"),
        ("rocketmq://user:secret@a:1;b:2/", "a:1;b:2"),
        ("rocketmq://user:secret@a;user:secret@b:2/", "a:9876;b:2"),
        (["rocketmq://user:secret@a:1", "rocketmq://user:secret@b:2/"], "a:1;b:2"),
    ],
)
def test_name_servers_of_urls(url: object, found: str) -> None:
    assert name_servers(Connection(url)) == found


@pytest.mark.parametrize(
    ("url", "given", "found"),
    [
        ("rocketmq://a:1", None, None),
        ("rocketmqs://a:1", None, ClientTls()),
        ("rocketmqs://a:1;b:2/", {"ca_certs": "/ca.pem"}, ClientTls(ca="/ca.pem")),
        ("rocketmq://a:1", True, ClientTls()),
        ("rocketmq://a:1", {"check_hostname": False}, ClientTls(verify=Verify.CA)),
        ("rocketmq://a:1", {"cert_reqs": ssl.CERT_NONE}, ClientTls(verify=Verify.NONE)),
        (
            "rocketmq://a:1",
            {"certfile": "/c", "keyfile": "/k", "password": "p"},
            ClientTls(cert="/c", key="/k", key_password="p"),
        ),
    ],
)
def test_tls_of_urls(url: str, given: object, found: ClientTls | None) -> None:
    connection = Connection(url, ssl=given)
    assert access_of(connection, needs_tls=connection.transport.uses_tls).tls == found
    name_servers(connection)


@pytest.mark.parametrize(
    ("url", "options", "found"),
    [
        ("rocketmq://a:1", {}, None),
        ("rocketmq://user:secret@a:1", {}, Credentials("user", "secret")),
        ("rocketmq://user:secret@", {}, Credentials("user", "secret")),
        ("rocketmqs://us%3Aer:p%40%3B%2Fw@a:1", {}, Credentials("us:er", "p@;/w")),
        ("rocketmq://user:secret@a:1;b:2/", {}, Credentials("user", "secret")),
        ("rocketmq://a:1;user:secret@b:2/", {}, Credentials("user", "secret")),
        ("rocketmq://user:p%40@a:1;user:p%40@b:2/", {}, Credentials("user", "p@")),
        ("rocketmq://a:1", {"access_key": "u", "secret_key": "p"}, Credentials("u", "p")),
        ("rocketmq://u:p@a:1", {"access_key": "u", "secret_key": "p"}, Credentials("u", "p")),
    ],
)
def test_user_and_password_of_urls(
    url: str, options: dict[str, object], found: Credentials | None
) -> None:
    connection = Connection(url, transport_options=options)
    assert access_of(connection, needs_tls=False).credentials == found
    name_servers(connection)
    for part in connection.alt[1:]:  # kombu fails over from one name server to the next.
        connection.switch(part)
        assert access_of(connection, needs_tls=False).credentials == found


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        ("rocketmq://user@a:1", {}, "the broker URL has no password"),
        ("rocketmq://:secret@a:1", {}, "the broker URL has no user"),
        ("rocketmq://a:1;user@b:2/", {}, "name server 2 of the broker URL has no password"),
        ("rocketmq://a:1", {"secret_key": "secret"}, "broker_transport_options has no user"),
        ("rocketmq://u:secret@a:1;u:other@b:2/", {}, "different users or passwords"),
        (
            "rocketmq://u:secret@a:1",
            {"access_key": "v", "secret_key": "secret"},
            "the broker URL and broker_transport_options",
        ),
    ],
)
def test_invalid_credentials_are_refused_without_showing_a_password(
    url: str, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as raised:
        access_of(Connection(url, transport_options=options), needs_tls=False)
    assert "secret@" not in str(raised.value)
    assert "other" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "rocketmq://user:hidden@a:1",
        "rocketmqs://user:hidden@a:1;user:hidden@b:2/",
        "rocketmq://a:1;user:hidden@b:2/",
        "rocketmq://",
    ],
)
def test_passwords_are_not_shown(url: str) -> None:
    options = {"access_key": "user", "secret_key": "hidden"}
    connection = Connection(url, transport_options=options, ssl={"password": "hidden"})
    transport = connection.transport
    shown = [connection.as_uri(), repr(connection), str(connection), repr(vars(transport))]
    app = Celery("shop", broker=url)
    app.conf.broker_transport_options = options
    app.conf.broker_use_ssl = {"password": "hidden"}
    shown += [app.conf.humanize(), app.bugreport(), repr(app)]
    shown += [app.connection_for_read().as_uri(), repr(app.connection_for_write())]
    assert not [text for text in shown if "hidden" in text]


def test_unknown_names_of_tls_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="broker_use_ssl: ca_cert: not known"):
        access_of(Connection("rocketmqs://a:1", ssl={"ca_cert": "/ca.pem"}), needs_tls=True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("rocketmq://a:1;user:secret@b/c:2/", "name server 2 is not host:port"),
        ("rocketmq://user:secret@a:1;user:secret@b:70000/", "name server 2 is not host:port"),
        ("rocketmq://a:1/shop", "topic_prefix"),
        ("rocketmq://a:1;b:2/shop", "name server 2 is not host:port"),
        ("rocketmq://a:1;b:70000/", "name server 2 is not host:port"),
    ],
)
def test_invalid_urls_are_refused(url: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as raised:
        name_servers(Connection(url))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"visibility_timeout": 0}, "visibility_timeout"),
        ({"visibility_timeout": "1 h"}, "visibility_timeout"),
        ({"queues_per_topic": 0}, "queues_per_topic"),
        ({"group": "a b"}, "illegal characters"),
        ({"topic_prefix": "%RETRY%"}, "topic_prefix"),
    ],
)
def test_invalid_transport_options_are_refused(options: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        transport_settings(options)


def test_options_of_kombu_are_left_alone() -> None:
    found = transport_settings({"max_retries": 3, "visibility_timeout": 30})
    assert found.visibility_timeout == 30


@pytest.mark.parametrize(
    ("seconds", "found"),
    [(-5, None), (3, None), (4, 3_000), (60, 59_000), (7_200, 3_600_000)],
)
def test_delivery_times(seconds: int, found: int | None) -> None:
    eta = datetime.fromtimestamp(NOW / 1000 + seconds, UTC).isoformat()
    at = delivery_time({"headers": {"eta": eta}}, NOW, 3_600_000)
    assert at == (None if found is None else NOW + found)


@pytest.mark.parametrize(
    "payload",
    [{}, {"headers": {}}, {"headers": {"eta": 5}}, {"headers": {"eta": "soon"}},
     {"headers": {"eta": "2100-01-01T00:00:00"}}],
)  # fmt: skip
def test_etas_that_only_a_worker_understands(payload: dict[str, object]) -> None:
    assert delivery_time(payload, NOW, 3_600_000) is None
