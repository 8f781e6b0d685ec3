"""A broker as a program: with its own name server, unless its settings name others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from mqlake.broker.broker import Broker
from mqlake.broker.metrics.observed_broker import ObservedBroker
from mqlake.broker.settings import BrokerSettings, make_broker_settings
from mqlake.errors import MqlakeError, StoreError
from mqlake.metrics.metric import Sample
from mqlake.metrics.publishing import NOWHERE, publish_as_set
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.programs.kernels import load_kernels
from mqlake.remoting.errors import CannotListenError
from mqlake.storage.clock import Clock
from mqlake.storage.local import LocalDirectory
from mqlake.store import MessageStore
from mqlake.store.config.properties_file import PATH, read_changed
from mqlake.store.recovery.recovery_note import note_recovery
from mqlake.tls.settings import client_tls, tls_fields

if TYPE_CHECKING:
    from mqlake.programs.console import ConsoleProcess
    from mqlake.proxy.local import LocalService

NAMESRV_PORT = 9876

_ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104

_log = logging.getLogger(__name__)


def starting_settings(given: Mapping[str, object]) -> BrokerSettings:
    """Return the settings that a broker starts with.

    Settings that were changed while a broker ran are kept in `config/broker.properties` of its
    store. They apply unless `given` overrides them.

    Args:
        given: by the names of `broker.conf`, or by those of the attributes.

    Raises:
        StoreError: a setting has an invalid value, or a file cannot be read.
    """
    settings = make_broker_settings(given)
    directory = LocalDirectory(settings.store_path)
    changed = read_changed(directory, BrokerSettings)
    where = directory.describe(PATH)
    if changed.ignored:
        _log.warning("%s: not read from this file: %s", where, ", ".join(changed.ignored))
    added = changed.besides(BrokerSettings, given)
    if not added:
        return settings
    _log.info("%s: %s", where, ", ".join(f"{name}={value}" for name, value in added.items()))
    try:
        return make_broker_settings({**msgspec.to_builtins(settings), **added})
    except StoreError as error:
        raise StoreError(f"{where}: {error}") from None


def _check_grpc() -> None:
    """Check, before the store is opened, that gRPC can be served."""
    from mqlake.proxy.local import check_installed

    check_installed()


async def _note_recovery(broker: Broker) -> None:
    """Note what opening the store found and repaired, for those who ask later."""
    store = broker.state.store
    assert isinstance(store, MessageStore)
    now = store.clock.milliseconds()
    await asyncio.to_thread(note_recovery, store.directory, store.core.recovered, now)


def _grpc_service(broker: Broker) -> LocalService:
    from mqlake.proxy.local import LocalService

    return LocalService(broker)


def _check_console() -> None:
    """Check, before the store is opened, that the console can be started."""
    from mqlake.programs.console import check_console_installed

    check_console_installed()


def _console(settings: BrokerSettings, name_servers: str) -> ConsoleProcess:
    from mqlake.client.access import ClientAccess
    from mqlake.console.options import ConsoleOptions
    from mqlake.programs.console import ConsoleProcess

    return ConsoleProcess(
        ConsoleOptions(
            name_servers=name_servers,
            stores=(settings.store_path.absolute(),),
            port=settings.console_port,
            # Without it, every local user could read the store, whatever the broker's ACL says.
            login=settings.authentication_enabled or settings.acl_enable,
            access=ClientAccess(tls=client_tls(settings)),
        )
    )


class BrokerProgram:
    """A broker and, if its settings name no name server, a name server in the same event loop.

    Args:
        settings: see `starting_settings`.
        config: the file of the settings, to which changes are written while the broker runs.
        clock, client_time: see `Broker`.

    Attributes:
        broker: set while the program runs.
        name_servers: addresses of all name servers, separated by `;`; set while the program runs.
    """

    broker: Broker
    name_servers: str

    def __init__(
        self,
        settings: BrokerSettings,
        namesrv_port: int = NAMESRV_PORT,
        config: Path | None = None,
        clock: Clock | None = None,
        client_time: Callable[[], int] | None = None,
    ) -> None:
        self._settings, self._namesrv_port = settings, namesrv_port
        self._config, self._clock, self._client_time = config, clock, client_time
        self._serving: Broker | None = None
        self._published = NOWHERE
        self._grpc: LocalService | None = None

    async def __aenter__(self) -> Self:
        begin = time.perf_counter()
        settings = self._settings
        if settings.grpc_server_port:
            _check_grpc()
        if settings.console_port:
            _check_console()
        async with AsyncExitStack() as undo:
            if not settings.name_servers:
                address = await self._start_name_server(undo)
                settings = msgspec.structs.replace(settings, namesrv_addr=address)
            # Published also while kernels are compiled, and while the broker recovers its store.
            observed = ObservedBroker(settings, lambda: self._serving, self.grpc_samples)
            self._published = await publish_as_set(
                settings, settings.listen_address, observed, undo
            )
            await asyncio.get_running_loop().run_in_executor(None, load_kernels)
            self.broker = await undo.enter_async_context(
                Broker(
                    settings,
                    self._config,
                    clock=self._clock,
                    client_time=self._client_time,
                    progress=observed.recovering,
                )
            )
            await _note_recovery(self.broker)
            if settings.grpc_server_port:
                self._grpc = await undo.enter_async_context(_grpc_service(self.broker))
            if settings.console_port:
                await undo.enter_async_context(_console(settings, settings.namesrv_addr))
            self._serving = self.broker
            undo.push_async_callback(self._stop_publishing)
            self.name_servers = settings.namesrv_addr
            self._undo = undo.pop_all()
        _log.info(
            "broker %s (%s, id %d) at %s, name server %s, store %s: ready after %.2f s",
            settings.broker_name,
            settings.broker_role.value,
            settings.broker_id,
            settings.broker_address,
            settings.namesrv_addr,
            settings.store_path,
            time.perf_counter() - begin,
        )
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._undo.aclose()

    @property
    def failed(self) -> asyncio.Future[StoreError]:
        """A future that is done once the broker has failed; set while the program runs."""
        return self.broker.failed

    def grpc_samples(self) -> Iterable[Sample]:
        """Return what the gRPC service counts, as metrics; nothing if it is off."""
        return () if self._grpc is None else self._grpc.samples()

    async def _stop_publishing(self) -> None:
        await self._published.finish()
        self._serving = None

    async def _start_name_server(self, undo: AsyncExitStack) -> str:
        """Start the broker, and return its address."""
        address = self._settings.listen_address
        names = NameServer(
            NamesrvSettings(
                bind_address=address,
                listen_port=self._namesrv_port,
                kv_config_path=str(self._settings.store_path / "config" / "kvConfig.json"),
                proxy_protocol_addresses=self._settings.proxy_protocol_addresses,
                **tls_fields(self._settings),
            )
        )
        try:
            port = await names.start()
        except CannotListenError as error:
            raise MqlakeError(
                f"name server: {error}; name a running one with namesrvAddr, or choose another port"
            ) from error
        undo.push_async_callback(names.stop)
        address = _ALL_ADDRESSES.get(address, address)
        return f"{f'[{address}]' if ':' in address else address}:{port}"
