"""Settings of a name server, under upstream's names (`NamesrvConfig`, `NettyServerConfig`)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, cast

import msgspec

from mqlake.auth.settings import InitialUser, InnerCredentials, RequestCodes
from mqlake.auth.settings import check as check_access
from mqlake.protocol.signature import Credentials, credentials_of
from mqlake.remoting.tls.options import ClientAuth, TlsMode
from mqlake.store.bounds import (
    LAST_PORT,
    Count,
    CountOrNone,
    Interval,
    ListenAddress,
    MetricHeaders,
    MetricLabels,
    MetricsExporter,
    MetricsTarget,
    Networks,
    PathOrEmpty,
    PathText,
    Port,
    Texts,
    Timeout,
    Within,
    check,
    encoded_name,
    secrets,
    shown,
)
from mqlake.store.settings import settings_of
from mqlake.tls.settings import CONFIG_FILE


class NamesrvSettings(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a name server stores, and how it answers. Times are milliseconds."""

    # Addresses and files
    bind_address: ListenAddress = "127.0.0.1"
    """Address to listen on; by default only this machine (upstream: all addresses)."""
    listen_port: Port = 9876
    server_channel_max_idle_time_seconds: CountOrNone = 120
    kv_config_path: PathOrEmpty = ""
    """File of the KV configuration; "" keeps it in memory only."""
    config_store_path: PathOrEmpty = ""
    """File to which UPDATE_NAMESRV_CONFIG writes these settings when it changes them; "" for
    none.
    """
    config_black_list: Texts = "configBlackList;configStorePath;kvConfigPath"
    """Settings that UPDATE_NAMESRV_CONFIG may not change, in addition to those that it never
    may.
    """
    # Answers
    order_message_enable: bool = False
    """Whether routes contain the queues of an ordered topic on each broker."""
    return_order_topic_config_to_broker: bool = True
    scan_not_active_broker_interval: Interval = 5000
    support_acting_master: bool = False
    """Whether the slave with the smallest id acts as the master if the master is gone."""
    notify_min_broker_id_changed: bool = False
    """Whether brokers whose slaves may act for the master are notified if the smallest id of their
    name changes.
    """
    enable_all_topic_list: bool = True
    enable_topic_list: bool = True
    need_wait_for_service: bool = False
    wait_seconds_for_service: CountOrNone = 45
    """Seconds after the start in which no route is answered, if `needWaitForService`."""
    delete_topic_with_broker_registration: bool = False
    """Whether a topic that a broker no longer registers is removed."""
    # Limits
    max_address_share: Annotated[int, Within(1, 100)] = 50
    """Percent of a limit for all. While more than half of the limit is in use, the brokers or
    clients of one address together can add entries only until they have this share.
    """
    max_topic_nums: Annotated[int, Within(1, 10_000_000)] = 200_000
    """Maximum number of topics that brokers may register; a topic counts once for each broker name
    that has it, a static topic once more for each of its queues.
    """
    max_broker_nums: Annotated[int, Within(1, 100_000)] = 1000
    """Maximum number of registered brokers; one counts once for each name that it registers."""
    max_kv_config_nums: Annotated[int, Within(1, 1_000_000)] = 10_000
    """Maximum number of values in the KV configuration."""
    max_kv_config_size: Annotated[int, Within(1_024, 268_435_456)] = 4 << 20
    """Maximum bytes of all keys and values of the KV configuration."""
    long_request_queue_capacity: Annotated[int, Within(1, 100_000)] = 1000
    """Maximum number of waiting requests that take longer than 2 ms."""

    # Access control
    authentication_enabled: bool = False
    """Whether every request must be signed by a user. RocketMQ's name server has no access
    control."""
    authorization_enabled: bool = False
    """Whether users need permissions for what they request. It needs `authenticationEnabled`."""
    init_authentication_user: InitialUser = ""
    """A super user that is created at the start if it does not exist. An existing user keeps its
    password. The name server never shows this setting."""
    inner_client_authentication_credentials: InnerCredentials = ""
    """The credentials with which brokers sign their registrations, and with which this name server
    signs its requests to brokers. Their user is created at the start as a super user if it does not
    exist. The name server never shows this setting."""
    authentication_whitelist: RequestCodes = ""
    """Codes of requests that need no signature."""
    authorization_whitelist: RequestCodes = ""
    """Codes of requests that need no permission."""
    auth_config_path: PathText = "~/namesrv"
    """The directory with the users and ACLs, in `config/auth.json`. Name servers on one machine
    need different directories."""
    max_user_nums: Annotated[int, Within(1, 100_000)] = 1000
    """Maximum number of users."""
    max_acl_entry_nums: Annotated[int, Within(1, 100_000)] = 1000
    """Maximum number of entries in the policies of one user."""
    max_admin_body_size: Annotated[int, Within(4_096, 16_777_216)] = 2 << 20
    """Maximum bytes of the body of a request about users and ACLs."""

    # Connections
    proxy_protocol_addresses: Networks = ""
    """Addresses and networks of proxies, separated by `;`, whose connections may begin with a
    header of the PROXY protocol, version 1 or 2, as HAProxy sends it before TLS. The address in it
    counts as the client's. Other connections with such a header are closed, because anybody could
    claim any address. `0.0.0.0/0;::/0` accepts it from everybody, as RocketMQ does."""

    # Monitoring
    metrics_exporter_type: MetricsExporter = "DISABLE"
    """How metrics are published ([metrics.md](metrics.md)). PROM: `mqlake namesrv` serves
    `/metrics` for Prometheus, and `/livez` and `/readyz`, over HTTP; anyone who reaches the port
    may read them. OTLP_GRPC: it sends them to an OpenTelemetry collector. LOG: it logs them."""
    metrics_prom_exporter_host: ListenAddress = ""
    """The address on which the pages are served; by default, the one on which the name server
    listens."""
    metrics_prom_exporter_port: Annotated[int, Within(1, LAST_PORT)] = 5558
    """The port on which the pages are served."""
    metrics_grpc_exporter_target: MetricsTarget = ""
    """OTLP_GRPC: the collector's `host:port`. TLS is used, unless it begins with `http://`."""
    metrics_grpc_exporter_header: MetricHeaders = ""
    """OTLP_GRPC: headers of each request, such as `authorization:Bearer abc`. The name server
    never shows this setting."""
    metric_grpc_exporter_time_out_in_mills: Timeout = 3000
    """OTLP_GRPC: how long an export may take."""
    metric_grpc_exporter_interval_in_mills: Interval = 60_000
    """OTLP_GRPC: the time between two exports."""
    metrics_export_batch_max_data_points: Count = 1000
    """OTLP_GRPC: the maximum number of data points in one request."""
    metric_logging_exporter_interval_in_mills: Interval = 10_000
    """LOG: the time between two exports."""
    metrics_in_delta: bool = False
    """OTLP_GRPC and LOG: whether totals and histograms are what was added since the last export
    that arrived, with the label `aggregation="delta"`."""
    metrics_label: MetricLabels = ""
    """Further labels of all samples, such as `zone:a,rack:7`."""
    slow_request_millis: CountOrNone = 0
    """Requests that take at least this long are logged as slow, with the client, the request and
    its answer. 0: none."""

    # TLS
    tls_server_mode: TlsMode = msgspec.field(default=TlsMode.PERMISSIVE, name="tls.server.mode")
    """Which connections are accepted: `disabled`: those without TLS; `enforcing`: those with TLS;
    `permissive`: both, on the same port."""
    tls_config_file: PathText = msgspec.field(default=CONFIG_FILE, name="tls.config.file")
    """A file with the settings below, which takes precedence over them. It may also contain
    `tls.server.keyPassword` and `tls.client.keyPassword`, which are no settings, because whoever
    may read the settings would see them. The default file need not exist."""
    tls_test_mode_enable: bool = msgspec.field(default=True, name="tls.test.mode.enable")
    """Whether the server creates a self-signed certificate, which nobody can verify, if
    `tls.server.certPath` is empty. It does so when the first connection with TLS arrives, and needs
    the extra `tls`. (RocketMQ ignores `tls.server.certPath` if this is true.)"""
    tls_server_cert_path: PathOrEmpty = msgspec.field(default="", name="tls.server.certPath")
    """The server's certificate, followed by those of intermediate authorities, in PEM format. It is
    loaded again after a change, once it fits the key."""
    tls_server_key_path: PathOrEmpty = msgspec.field(default="", name="tls.server.keyPath")
    """The private key of `tls.server.certPath` in PEM format."""
    tls_server_need_client_auth: ClientAuth = msgspec.field(
        default=ClientAuth.NONE, name="tls.server.need.client.auth"
    )
    """Whether clients are asked for a certificate. No effect unless `tls.server.authClient`."""
    tls_server_auth_client: bool = msgspec.field(default=False, name="tls.server.authClient")
    """Whether the certificates of clients are checked. With `false`, `tls.server.need.client.auth`
    must not be `require`."""
    tls_server_trust_cert_path: PathOrEmpty = msgspec.field(
        default="", name="tls.server.trustCertPath"
    )
    """The authorities that sign the certificates of clients. Empty: those that the system
    trusts."""
    tls_enable: bool = msgspec.field(default=False, name="tls.enable")
    """Whether the connections that the name server opens to brokers use TLS. They fail if the other
    side does not."""
    tls_client_auth_server: bool = msgspec.field(default=True, name="tls.client.authServer")
    """Whether these connections require a certificate that an authority of
    `tls.client.trustCertPath` has signed (RocketMQ's default: false)."""
    tls_client_verify_host_name: bool = msgspec.field(
        default=True, name="tls.client.verifyHostName"
    )
    """Whether that certificate must name the host or the IP address of the other side. RocketMQ
    does not have this setting, and does not check it."""
    tls_client_trust_cert_path: PathOrEmpty = msgspec.field(
        default="", name="tls.client.trustCertPath"
    )
    """The authorities that sign the certificates of servers. Empty: those that the system
    trusts."""
    tls_client_cert_path: PathOrEmpty = msgspec.field(default="", name="tls.client.certPath")
    """The certificate that these connections present, in PEM format."""
    tls_client_key_path: PathOrEmpty = msgspec.field(default="", name="tls.client.keyPath")
    """The private key of `tls.client.certPath` in PEM format."""

    def __post_init__(self) -> None:
        check(self)
        check_access(self)

    def __repr__(self) -> str:
        return shown(self)

    @property
    def inner_credentials(self) -> Credentials | None:
        """Return the credentials with which requests to brokers are signed."""
        return credentials_of(self.inner_client_authentication_credentials)


_OF_START = frozenset(
    field.encode_name
    for field in msgspec.structs.fields(NamesrvSettings)
    if re.search("^tls[.]|auth|^metric|^slow", field.encode_name, re.IGNORECASE)
)
FIXED = _OF_START | {
    "proxyProtocolAddresses",
    *("bindAddress", "listenPort", "configBlackList", "configStorePath", "kvConfigPath"),
}
"""Settings that never change while a name server runs."""


def make_namesrv_settings(
    values: NamesrvSettings | Mapping[str, object] | str | os.PathLike[str] | None,
) -> NamesrvSettings:
    """Return settings from a mapping (upstream's names or the attributes') or a file.

    Names that mqlake does not know cause a warning, and are ignored.

    Raises:
        StoreError: a setting has an invalid value, or a file cannot be read.
    """
    return settings_of(NamesrvSettings, values)


def changed(settings: NamesrvSettings, values: Mapping[str, str]) -> NamesrvSettings:
    """Return settings with new values for those upstream names that are known.

    Raises:
        StoreError: a setting has an invalid value.
    """
    present = _texts(settings)
    known = {name: value for name, value in values.items() if name in present}
    return settings_of(NamesrvSettings, {**present, **known})


def as_properties(settings: NamesrvSettings) -> dict[str, str]:
    """Return settings as texts by upstream's names, in alphabetical order, without passwords."""
    hidden = {encoded_name(NamesrvSettings, name) for name in secrets(NamesrvSettings)}
    return {name: text for name, text in _texts(settings).items() if name not in hidden}


def _texts(settings: NamesrvSettings) -> dict[str, str]:
    values = cast("dict[str, object]", msgspec.to_builtins(settings))
    texts = {name: _text(value) for name, value in values.items()}
    return dict(sorted(texts.items()))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
