"""What holds for all tests."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from mqlake.programs import ports
from tests import half_full_disk, leaks
from tests.imports import import_in_shares
from tests.memory import FreedMemory
from tests.patience import connect_patiently
from tests.scheduling import Scheduling, place
from tests.skips import summary
from tests.slow_machine import plugin as slow_machine
from tests.temporary import write_to_memory

if TYPE_CHECKING:
    from tests.tls.certificates import Authority

# A busy machine must not decide a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--slow-machine`."""
    slow_machine.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Let each process of a test run have free ports of its own.

    A port is free from its choice until a server listens on it: another process could choose it.
    """
    write_to_memory()
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    share = len(ports.PORTS) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports.PORTS = ports.PORTS[worker * share : (worker + 1) * share]
    slow_machine.register(config)
    config.pluginmanager.register(leaks, "leaks")
    config.pluginmanager.register(FreedMemory(), "freed memory")
    connect_patiently()
    half_full_disk.use()
    # Programs that mqlake starts at a low priority would wait for all other tests.
    os.setpriority = lambda *_: None  # type: ignore[assignment]


def pytest_collection(session: pytest.Session) -> None:
    """Let no garbage collection look at the tests again and again while they are collected."""
    gc.disable()
    if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        import_in_shares(session.config.rootpath)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Make the directory of a test first, so that it is removed last.

    A fixture that stops servers may not ask for the directory in which they write.
    """
    names: list[str] = getattr(item, "fixturenames", [])
    if "tmp_path" in names:
        names.remove("tmp_path")
        names.insert(0, "tmp_path")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; all others keep their order."""
    items.sort(key=lambda item: place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let all tests that share a Spark session run in one process: each start takes seconds."""
    if config.option.dist != "loadfile":
        return None
    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Leave them out of all later collections: they live as long as the process."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let the end of the process free them: C++ libraries report what is left over."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end of a run what to install so that nothing is skipped."""
    skipped = terminalreporter.stats.get("skipped", [])
    lines = summary([str(report.longrepr[-1]) for report in skipped])
    if lines:
        terminalreporter.section("what was skipped")
    for line in lines:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority that signs certificates, for tests of TLS."""
    # Most tests do without the package that creates certificates, and start earlier.
    from tests.tls.certificates import Authority

    return Authority(tmp_path_factory.mktemp("authority"))
