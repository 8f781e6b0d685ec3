"""Settings of a store that is copied from a master, or to slaves.

Upstream: `BrokerConfig`, `MessageStoreConfig`. Replication needs nothing else of a broker's
settings, which extend these.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Annotated

import msgspec

from mqlake.protocol import signature
from mqlake.remoting.tls.options import ClientAuth, TlsMode
from mqlake.store.bounds import (
    Addresses,
    Form,
    Interval,
    IPAddressOrEmpty,
    ListenAddress,
    Name,
    Networks,
    Now,
    PathOrEmpty,
    PathText,
    Port,
    Restart,
    Within,
    shown,
)
from mqlake.store.settings import StoreSettings
from mqlake.tls.settings import CONFIG_FILE

_Credentials = Annotated[
    str,
    Form(
        'JSON such as `{"accessKey": …, "secretKey": …}`', signature.are_credentials, is_secret=True
    ),
]


class ReplicationSettings(StoreSettings, frozen=True, rename="camel", kw_only=True):
    """How a broker copies its log to slaves, or from a master.

    Times are milliseconds, sizes bytes, unless stated otherwise.
    """

    # Identity and addresses
    broker_name: Restart[Name] = msgspec.field(default_factory=socket.gethostname)
    """The broker's name. A master and its slaves have the same name."""
    bind_address: Restart[ListenAddress] = ""
    """The address to listen on. Empty: the loopback address if `brokerIP1` is a loopback address,
    otherwise all addresses, which is RocketMQ's default."""

    # Access control
    inner_client_authentication_credentials: Restart[_Credentials] = ""
    """The user with which the broker signs its own requests to other brokers. With
    `authenticationEnabled`, it is created like `initAuthenticationUser`. The broker never shows
    this setting."""

    # Limits
    max_address_share: Now[Annotated[int, Within(1, 100)]] = 20
    """Percent of a limit for all clients. While more than half of the limit is in use, the clients
    of one address together can add entries only until they have this share. Set it to 100 if all
    clients connect through one proxy that does not name them (`proxyProtocolAddresses`)."""

    # Replication
    ha_listen_port: Restart[Port] = 0
    """The port for slaves. 0: `listenPort` + 1; if that is in use, a SYNC_MASTER does not start,
    and another master has no slaves (RocketMQ's default: 10912)."""
    broker_ip2: Restart[IPAddressOrEmpty] = msgspec.field(default="", name="brokerIP2")
    """The address that slaves are given for this machine. Empty: `brokerIP1`."""
    ha_allowed_addresses: Restart[Networks] = ""
    """Addresses and networks of slaves, separated by `;`, such as `10.0.0.7;10.1.0.0/16`. Empty:
    everyone who can connect to the port receives the commit log. RocketMQ does not have this
    setting."""
    ha_master_address: Restart[Addresses] = ""
    """The master's port for slaves, as "host:port". Empty: the name server provides it."""
    ha_send_heartbeat_interval: Restart[Interval] = 5000
    """How often master and slave send something on an idle connection."""
    ha_housekeeping_interval: Restart[Interval] = 20_000
    """Master and slave close a connection on which they receive nothing for this long."""
    ha_transfer_batch_size: Restart[Annotated[int, Within(1, 1 << 24)]] = 32 << 10
    """The maximum number of bytes of the commit log in one frame, unless the slave lacks more than
    4 MiB: then frames have up to 1 MiB."""
    ha_flow_control_enable: Restart[bool] = False
    """Whether `maxHaTransferByteInSecond` limits the bytes sent to each slave."""
    max_ha_transfer_byte_in_second: Restart[Annotated[int, Within(1024, 1 << 40)]] = 100 << 20
    """Bytes per second. See `haFlowControlEnable`."""

    # Controller
    enable_controller_mode: Restart[bool] = False
    """Whether a controller decides which broker of this name is the master. If so, `brokerRole` and
    `brokerId` are ignored."""
    check_sync_state_set_period: Restart[Interval] = 5000
    """How often a master checks whether slaves in the in-sync set lag."""
    ha_max_time_slave_not_catchup: Restart[Interval] = 15_000
    """How long a slave may lack a part of the log before it is removed from the in-sync set."""
    async_learner: Restart[bool] = False
    """Whether this broker only copies the log, and can never become the master."""

    # TLS
    tls_server_mode: Restart[TlsMode] = msgspec.field(
        default=TlsMode.PERMISSIVE, name="tls.server.mode"
    )
    """Which connections are accepted: `disabled`: those without TLS; `enforcing`: those with TLS;
    `permissive`: both, on the same port."""
    tls_config_file: Restart[PathText] = msgspec.field(default=CONFIG_FILE, name="tls.config.file")
    """A file with the settings below, which takes precedence over them. It may also contain
    `tls.server.keyPassword` and `tls.client.keyPassword`, which are no settings, because whoever
    may read the settings would see them. The default file need not exist."""
    tls_test_mode_enable: Restart[bool] = msgspec.field(default=True, name="tls.test.mode.enable")
    """Whether the server creates a self-signed certificate, which nobody can verify, if
    `tls.server.certPath` is empty. It does so when the first connection with TLS arrives, and needs
    the extra `tls`. (RocketMQ ignores `tls.server.certPath` if this is true.)"""
    tls_server_cert_path: Restart[PathOrEmpty] = msgspec.field(
        default="", name="tls.server.certPath"
    )
    """The server's certificate, followed by those of intermediate authorities, in PEM format. It is
    loaded again after a change, once it fits the key."""
    tls_server_key_path: Restart[PathOrEmpty] = msgspec.field(default="", name="tls.server.keyPath")
    """The private key of `tls.server.certPath` in PEM format."""
    tls_server_need_client_auth: Restart[ClientAuth] = msgspec.field(
        default=ClientAuth.NONE, name="tls.server.need.client.auth"
    )
    """Whether clients are asked for a certificate. No effect unless `tls.server.authClient`."""
    tls_server_auth_client: Restart[bool] = msgspec.field(
        default=False, name="tls.server.authClient"
    )
    """Whether the certificates of clients are checked. With `false`, `tls.server.need.client.auth`
    must not be `require`."""
    tls_server_trust_cert_path: Restart[PathOrEmpty] = msgspec.field(
        default="", name="tls.server.trustCertPath"
    )
    """The authorities that sign the certificates of clients. Empty: those that the system
    trusts."""
    tls_enable: Restart[bool] = msgspec.field(default=False, name="tls.enable")
    """Whether the connections that the broker opens to name servers, controllers and other brokers
    use TLS. They fail if the other side does not."""
    ha_tls_enable: Restart[bool] = True
    """Whether the log is copied over TLS, too: the port for slaves then accepts what
    `tls.server.mode` says, and a slave with `tls.enable` uses TLS to its master. RocketMQ's
    replication has no TLS: set it to `false` on a slave of RocketMQ's master, and on a master with
    `tls.server.mode=enforcing` whose slaves are RocketMQ's."""
    tls_client_auth_server: Restart[bool] = msgspec.field(
        default=True, name="tls.client.authServer"
    )
    """Whether these connections require a certificate that an authority of
    `tls.client.trustCertPath` has signed (RocketMQ's default: false)."""
    tls_client_verify_host_name: Restart[bool] = msgspec.field(
        default=True, name="tls.client.verifyHostName"
    )
    """Whether that certificate must name the host or the IP address of the other side. RocketMQ
    does not have this setting, and does not check it."""
    tls_client_trust_cert_path: Restart[PathOrEmpty] = msgspec.field(
        default="", name="tls.client.trustCertPath"
    )
    """The authorities that sign the certificates of servers. Empty: those that the system
    trusts."""
    tls_client_cert_path: Restart[PathOrEmpty] = msgspec.field(
        default="", name="tls.client.certPath"
    )
    """The certificate that these connections present, in PEM format."""
    tls_client_key_path: Restart[PathOrEmpty] = msgspec.field(default="", name="tls.client.keyPath")
    """The private key of `tls.client.certPath` in PEM format."""

    def __repr__(self) -> str:
        return shown(self)

    @property
    def inner_credentials(self) -> signature.Credentials | None:
        """Return the credentials with which requests to other brokers are signed."""
        return signature.credentials_of(self.inner_client_authentication_credentials)

    @property
    def listen_address(self) -> str:
        """Return the address to listen on."""
        if self.bind_address:
            return self.bind_address
        return self.broker_ip1 if ip_address(self.broker_ip1).is_loopback else "0.0.0.0"  # noqa: S104
