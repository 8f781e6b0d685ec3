"""RocketMQ's names of TLS settings, and its file `tls.properties`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.broker.settings import BrokerSettings, make_broker_settings
from mqlake.errors import StoreError
from mqlake.namesrv.settings import NamesrvSettings, as_properties, make_namesrv_settings
from mqlake.remoting.tls.options import ClientAuth, ClientTls, ServerTls, TlsMode, Verify
from mqlake.tls import settings as tls_settings
from mqlake.tls.settings import client_tls, server_tls, tls_fields

MADE = {"broker": make_broker_settings, "name server": make_namesrv_settings}
BOTH = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


@pytest.fixture(autouse=True)
def no_file_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tls_settings, "CONFIG_FILE", str(tmp_path / "missing"))


@BOTH
def test_by_default_a_server_accepts_both_and_opens_plain_connections(make: type) -> None:
    settings = make({"tls.config.file": tls_settings.CONFIG_FILE})
    assert server_tls(settings) == ServerTls(mode=TlsMode.PERMISSIVE)
    assert client_tls(settings) is None


@BOTH
def test_every_name_has_its_effect(make: type) -> None:
    settings = make(
        {
            "tls.config.file": tls_settings.CONFIG_FILE,
            "tls.server.mode": "enforcing",
            "tls.server.certPath": "/tls/server.pem",
            "tls.server.keyPath": "/tls/server.key",
            "tls.server.need.client.auth": "require",
            "tls.server.authClient": "true",
            "tls.server.trustCertPath": "/tls/ca.pem",
            "tls.enable": "true",
            "tls.client.trustCertPath": "/tls/servers.pem",
            "tls.client.certPath": "/tls/client.pem",
            "tls.client.keyPath": "/tls/client.key",
        }
    )
    assert server_tls(settings) == ServerTls(
        mode=TlsMode.ENFORCING,
        cert="/tls/server.pem",
        key="/tls/server.key",
        ca="/tls/ca.pem",
        client_auth=ClientAuth.REQUIRE,
    )
    assert client_tls(settings) == ClientTls(
        cert="/tls/client.pem", key="/tls/client.key", ca="/tls/servers.pem", verify=Verify.FULL
    )


@pytest.mark.parametrize(
    ("values", "verify"),
    [
        ({}, Verify.FULL),
        ({"tls.client.verifyHostName": "false"}, Verify.CA),
        ({"tls.client.authServer": "false"}, Verify.NONE),
    ],
)
def test_what_is_verified(values: dict[str, object], verify: Verify) -> None:
    given = {"tls.config.file": tls_settings.CONFIG_FILE, "tls.enable": "true", **values}
    found = client_tls(make_broker_settings(given))
    assert found is not None
    assert found.verify is verify


def test_the_file_takes_precedence_and_has_the_passwords(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text(
        "tls.test.mode.enable=false\n"
        "tls.server.certPath=/file/server.pem\n"
        "tls.server.keyPath=/file/server.key\n"
        "tls.server.keyPassword=s3cret\n"
        "tls.client.keyPassword=other\n"
        "tls.client.authServer=false\n"
        # Both are system properties only, in RocketMQ, too.
        "tls.server.mode=disabled\n"
        "tls.enable=false\n"
    )
    settings = make_broker_settings(
        {
            "tls.config.file": str(file),
            "tls.server.mode": "enforcing",
            "tls.server.certPath": "/conf/server.pem",
            "tls.enable": "true",
        }
    )
    server, client = server_tls(settings), client_tls(settings)
    assert (server.mode, server.cert) == (TlsMode.ENFORCING, "/file/server.pem")
    assert (server.key, server.key_password) == ("/file/server.key", "s3cret")
    assert client is not None
    assert (client.verify, client.key_password) == (Verify.NONE, "other")


def test_passwords_are_no_settings() -> None:
    for kind in (BrokerSettings, NamesrvSettings):
        assert not [name for name in kind.__struct_fields__ if "password" in name.lower()]
    with pytest.warns(UserWarning, match=r"tls\.server\.keyPassword is not known"):
        settings = make_namesrv_settings({"tls.server.keyPassword": "s3cret"})
    assert "s3cret" not in str(as_properties(settings))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tls.server.mode": "on"}, r"setting tls\.server\.mode: 'on' is not allowed"),
        ({"tls.test.mode.enable": "false"}, "there is no certificate"),
        ({"tls.server.need.client.auth": "require"}, "proves nothing"),
        ({"tls.config.file": "/missing/tls.properties"}, "/missing/tls.properties: No such file"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    values: dict[str, object], message: str
) -> None:
    given = {"tls.config.file": tls_settings.CONFIG_FILE, **values}
    with pytest.raises(StoreError, match=message):
        server_tls(make_broker_settings(given))


def test_wrong_values_in_the_file_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text("tls.server.need.client.auth=maybe\n")
    with pytest.raises(StoreError, match=r"tls\.properties: setting tls\.server\.need"):
        server_tls(make_broker_settings({"tls.config.file": str(file)}))


def test_brokers_and_name_servers_have_the_same_settings() -> None:
    broker, names = tls_fields(BrokerSettings()), tls_fields(NamesrvSettings())
    assert broker == names
    assert len(broker) == 14
