"""In which order the processes of a run import all test modules.

pytest rewrites the assertions of a module that it imports for the first time, which takes more
processor time than the rest of the collection. It keeps the result beside the module. Without an
order, all processes of a run would import, and rewrite, the same module at the same time.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest


def import_in_shares(root: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Import a share of all test modules, which no other process of the run begins with.

    Args:
        root: the directory of the folder `tests`.
        environment: names the process, and says how many there are.
    """
    names = share(modules(root, "test_*.py"), environment)
    # These say which other modules are rewritten.
    first = modules(root, "conftest.py") if names else ()
    for name in (*first, *names):
        # What fails is imported again by the collection, which reports it.
        with warnings.catch_warnings(), suppress(Exception, pytest.skip.Exception):
            warnings.simplefilter("error")
            importlib.import_module(name)


def modules(root: Path, pattern: str) -> Sequence[str]:
    """Return the names of all modules in `tests` whose files match."""
    paths = sorted((root / "tests").rglob(pattern))
    return [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]


def share(names: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
    """Return the names that this process begins with; none if it is the only one."""
    count = int(environment.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(environment.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    return names[number::count] if count > 1 else ()
