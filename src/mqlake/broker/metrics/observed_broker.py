"""What a broker reports about itself, also while it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mqlake.broker.broker import Broker
from mqlake.broker.metrics import connections, delivery, lag, pops, replication, storage, traffic
from mqlake.broker.settings import BrokerSettings
from mqlake.metrics.metric import Sample, gauge
from mqlake.metrics.observed import labels_of
from mqlake.remoting.slices import Job

RECOVERED = gauge(
    "mqlake_recovery_done", "Bytes that the recovery of the store has read and dispatched.", "bytes"
)
TO_RECOVER = gauge(
    "mqlake_recovery", "Bytes that the recovery of the store reads and dispatches.", "bytes"
)


class ObservedBroker:
    """One broker, as it is monitored.

    Args:
        broker: returns the broker; None while it starts, or stops.
        others: returns samples of what runs beside the broker.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        broker: Callable[[], Broker | None],
        others: Callable[[], Iterable[Sample]] = tuple,
    ) -> None:
        self._settings, self._broker, self._others = settings, broker, others
        self._recovery: tuple[int, int] | None = None

    def recovering(self, done: int, total: int) -> None:
        """Note how far the recovery is; may be called in any thread.

        Args:
            done, total: of the bytes that it reads and dispatches; both count.
        """
        self._recovery = done, total

    @property
    def labels(self) -> Mapping[str, str]:
        """Which broker it is, and the labels of `metricsLabel`."""
        settings = self._settings
        cluster, more = settings.broker_cluster_name, settings.metrics_label
        return labels_of("broker", settings.broker_name, cluster, more)

    def not_ready(self) -> str | None:
        """Return why clients cannot use the broker; None if they can."""
        broker = self._broker()
        if broker is None:
            return f"the broker starts or stops{_progress(self._recovery)}"
        if broker.failed.done():
            return f"the store has failed: {broker.failed.result()}"
        store = broker.state.store
        if broker.settings.is_slave:
            return None
        reason = store.health.not_writable
        if reason is None and store.copies.are_counted:
            reason = store.copies.missing
        return None if reason is None else f"no messages are accepted: {reason}"

    async def samples(self) -> list[Sample]:
        """Return all samples; while the broker starts, only those of its recovery."""
        found: list[Sample] = []
        if (recovery := self._recovery) is not None:
            found += [Sample(RECOVERED, recovery[0]), Sample(TO_RECOVER, recovery[1])]
        if (broker := self._broker()) is not None:
            found += await broker.runtime.slices.finish(_all(broker))
            found += self._others()
        return found


def _all(broker: Broker) -> Job[list[Sample]]:
    state, runtime = broker.state, broker.runtime
    state.store.dispatching.catch_up()  # Lag includes what is acknowledged.
    found: list[Sample] = []
    found += yield from storage.samples(state, runtime)
    found += yield from traffic.samples(state, runtime)
    found += yield from connections.samples(state, runtime, broker)
    found += yield from lag.samples(state)
    found += yield from delivery.samples(state, runtime)
    found += yield from pops.samples(state)
    found += replication.samples(state)
    return found


def _progress(recovery: tuple[int, int] | None) -> str:
    if recovery is None:
        return "; a start may recover the store, and the first one compiles kernels"
    done, total = recovery
    percent = 100 * done // total if total else 100
    return f"; the recovery of the store has done {done} of {total} bytes, {percent} %"
