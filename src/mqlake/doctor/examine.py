"""All checks, in the order in which a newcomer needs what they check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mqlake.doctor.finding import CheckResult
from mqlake.doctor.kernels import kernels
from mqlake.doctor.machine import disk, open_files
from mqlake.doctor.network import name_servers, ports
from mqlake.doctor.packages import extras, python
from mqlake.doctor.spark import java, spark


def examine(
    store: Path, addresses: Sequence[str] = (), *, starts_spark: bool = False
) -> Iterator[CheckResult]:
    """Yield what each check finds; nothing is changed.

    Args:
        store: the directory of a store, which need not exist.
        addresses: name servers, each "host:port".
        starts_spark: also start an embedded Spark, which takes seconds.
    """
    yield python()
    yield from extras()
    yield kernels()
    yield java()
    if starts_spark:
        yield spark()
    yield ports()
    yield from name_servers(addresses)
    yield disk(store)
    yield open_files()
