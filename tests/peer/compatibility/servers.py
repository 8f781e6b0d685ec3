"""What the tests run against: processes of mqlake, or Java's brokers in the tests' own process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.peer.compatibility.cluster import BROKERS, CLUSTER, PROXY, Cluster
from tests.peer.compatibility.java_class import FAILED, LIMIT, JavaClass, Outcome, Report

MQLAKE, JAVA = "mqlake", "RocketMQ"
REMOTE = "grpc.v2.RemoteGrpcIT"
"""Does at an endpoint what RocketMQ's tests of gRPC do at a proxy in their own process."""
GRPC = {"grpc.v2.LocalGrpcIT": (BROKERS[0], 1), "grpc.v2.ClusterGrpcIT": (PROXY, len(BROKERS))}
"""Where those classes' endpoint is, and the brokers that are behind it."""
_QUEUES = 8
"""Of a topic on each broker."""


class AbandonedError(Exception):
    """The run was ended before its time."""


class Servers:
    """Runs classes one after the other.

    Processes of mqlake serve several classes; new ones take their place after a class that changed
    settings or failed. Java's brokers live and end with the JVM that runs a class.
    """

    def __init__(self, side: str, directory: Path, logs: Path) -> None:
        self._side, self._directory, self._logs = side, directory, logs
        self._cluster: Cluster | None = None
        self._used = ExitStack()
        self._tests: JavaClass | None = None
        self._is_abandoned = False

    def run(
        self, name: str, methods: Sequence[str] = (), limit: float = LIMIT
    ) -> dict[str, Outcome]:
        """Run one class, or some of its methods; return how each method ended.

        Raises:
            AbandonedError: `abandon` was called.
        """
        log = self._logs / self._side / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        if self._side == JAVA:
            with tempfile.TemporaryDirectory(dir=self._directory) as place:
                return self._run_in(JavaClass(name, Path(place), log), methods, limit).outcomes
        if name in GRPC:
            return self._run_grpc(name, log, methods, limit).outcomes
        report = self._run(name, log, methods, limit)
        if report.changed or any(each.state == FAILED for each in report.outcomes.values()):
            self.close()
        return report.outcomes

    def _run(self, name: str, log: Path, methods: Sequence[str], limit: float) -> Report:
        if self._cluster is None:
            place = Path(tempfile.mkdtemp(dir=self._directory))
            self._used.callback(shutil.rmtree, place)
            self._cluster = self._used.enter_context(Cluster(place))
        cluster = self._cluster
        acts = {"stop": cluster.stop, "start": cluster.start}
        tests = JavaClass(
            name, self._directory, log, _properties(cluster), lambda verb, name: acts[verb](name)
        )
        return self._run_in(tests, methods, limit)

    def _run_grpc(self, name: str, log: Path, methods: Sequence[str], limit: float) -> Report:
        where, brokers = GRPC[name]
        with (
            tempfile.TemporaryDirectory(dir=self._directory) as place,
            Cluster(Path(place), has_grpc=True) as cluster,
        ):
            properties = {
                **_properties(cluster),
                "mqlake.grpc": str(cluster.grpc[where]),
                "mqlake.queues": str(brokers * _QUEUES),
            }
            tests = JavaClass(REMOTE, Path(place), log, properties)
            return self._run_in(tests, methods, limit)

    def _run_in(self, tests: JavaClass, methods: Sequence[str], limit: float) -> Report:
        self._tests = tests
        if self._is_abandoned:
            raise AbandonedError
        return tests.run(methods, limit)

    def abandon(self) -> None:
        """End the class that another thread runs, and let it run no other."""
        self._is_abandoned = True
        if self._tests is not None:
            self._tests.kill()

    def close(self) -> None:
        """Stop the processes, if any run."""
        self._cluster = None
        self._used.close()


@contextmanager
def started(side: str, logs: Path) -> Iterator[Servers]:
    """Give servers of MQLAKE or JAVA; `logs` gets a file for each class."""
    with tempfile.TemporaryDirectory(prefix="compatibility-") as directory:
        servers = Servers(side, Path(directory), logs)
        try:
            yield servers
        finally:
            servers.close()


def _properties(cluster: Cluster) -> Mapping[str, str]:
    brokers = ",".join(f"{name}={address}" for name, address in cluster.brokers.items())
    return {
        "mqlake.names": cluster.names,
        "mqlake.cluster": CLUSTER,
        "mqlake.brokers": brokers,
    }
