"""Settings of a broker or a name server, and its `tls.properties`, to TLS options.

Upstream: `TlsSystemConfig`, `TlsHelper.extractTlsConfigFromFile`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from mqlake.errors import StoreError
from mqlake.remoting.tls.options import ClientAuth, ClientTls, ServerTls, TlsMode, Verify
from mqlake.store.settings import read_properties, settings_of, texts

CONFIG_FILE: Final = "/etc/rocketmq/tls.properties"
"""RocketMQ's default: it need not exist."""
_PREFIX: Final = "tls."
_NOT_IN_FILE: Final = frozenset(("tls.enable", "tls.server.mode", "tls.config.file"))
_SERVER_PASSWORD: Final = "tls.server.keyPassword"  # noqa: S105 (a name)
_CLIENT_PASSWORD: Final = "tls.client.keyPassword"  # noqa: S105
_PASSWORDS: Final = frozenset((_SERVER_PASSWORD, _CLIENT_PASSWORD))
"""Only the file may contain them: whoever may read a server's settings would see them."""


class TlsSettings(Protocol):
    """The fields of settings that are about TLS."""

    @property
    def tls_enable(self) -> bool: ...
    @property
    def tls_config_file(self) -> str: ...
    @property
    def tls_test_mode_enable(self) -> bool: ...
    @property
    def tls_server_mode(self) -> TlsMode: ...
    @property
    def tls_server_cert_path(self) -> str: ...
    @property
    def tls_server_key_path(self) -> str: ...
    @property
    def tls_server_need_client_auth(self) -> ClientAuth: ...
    @property
    def tls_server_auth_client(self) -> bool: ...
    @property
    def tls_server_trust_cert_path(self) -> str: ...
    @property
    def tls_client_auth_server(self) -> bool: ...
    @property
    def tls_client_verify_host_name(self) -> bool: ...
    @property
    def tls_client_trust_cert_path(self) -> str: ...
    @property
    def tls_client_cert_path(self) -> str: ...
    @property
    def tls_client_key_path(self) -> str: ...


S = TypeVar("S", bound=TlsSettings)


def tls_fields(settings: msgspec.Struct) -> dict[str, Any]:
    """Return the fields about TLS, for the settings of another server in the same process."""
    names = (name for name in settings.__struct_fields__ if name.startswith("tls_"))
    return {name: getattr(settings, name) for name in names}


def server_tls(settings: TlsSettings) -> ServerTls:
    """Return the options of a server's connections.

    Raises:
        StoreError: `tls.properties` cannot be read, or settings contradict each other.
    """
    if settings.tls_server_mode is TlsMode.DISABLED:
        return ServerTls()
    found, passwords = _with_file(settings)
    if not found.tls_test_mode_enable and not found.tls_server_cert_path:
        raise StoreError(
            "setting tls.test.mode.enable is false, and there is no certificate: set"
            " tls.server.certPath and tls.server.keyPath"
        )
    return ServerTls(
        mode=settings.tls_server_mode,
        cert=_path(found.tls_server_cert_path),
        key=_path(found.tls_server_key_path),
        key_password=passwords.get(_SERVER_PASSWORD, ""),
        ca=_path(found.tls_server_trust_cert_path),
        client_auth=_client_auth(found),
    )


def client_tls(settings: TlsSettings) -> ClientTls | None:
    """Return the options of the connections that a server opens to others; None without TLS.

    Raises:
        StoreError: `tls.properties` cannot be read.
    """
    if not settings.tls_enable:
        return None
    found, passwords = _with_file(settings)
    verify = Verify.FULL if found.tls_client_verify_host_name else Verify.CA
    return ClientTls(
        cert=_path(found.tls_client_cert_path),
        key=_path(found.tls_client_key_path),
        key_password=passwords.get(_CLIENT_PASSWORD, ""),
        ca=_path(found.tls_client_trust_cert_path),
        verify=verify if found.tls_client_auth_server else Verify.NONE,
    )


def _client_auth(found: TlsSettings) -> ClientAuth:
    if found.tls_server_auth_client:
        return found.tls_server_need_client_auth
    if found.tls_server_need_client_auth is ClientAuth.REQUIRE:
        raise StoreError(
            "setting tls.server.need.client.auth is require, but tls.server.authClient is false: a"
            " certificate that nobody checks proves nothing; set authClient to true"
        )
    return ClientAuth.NONE


def _with_file(settings: S) -> tuple[S, dict[str, str]]:
    """Return settings with the values of `tls.properties`, and the passwords in it."""
    path = Path(settings.tls_config_file).expanduser()
    if settings.tls_config_file == CONFIG_FILE and not path.is_file():
        return settings, {}
    values = read_properties(path)
    passwords = {name: value for name, value in values.items() if name in _PASSWORDS}
    own = cast("msgspec.Struct", settings)
    given = {
        name: value
        for name, value in values.items()
        if name.startswith(_PREFIX) and name not in _NOT_IN_FILE | _PASSWORDS
    }
    try:
        return cast("S", settings_of(type(own), {**texts(own), **given})), passwords
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from None


def _path(text: str) -> str:
    return str(Path(text).expanduser()) if text else ""
