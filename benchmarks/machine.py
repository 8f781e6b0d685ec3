"""Describe the machine and the versions of what is measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = ("mqlake", "numpy", "numba", "llvmlite", "pyspark", "pyarrow")


def machine() -> dict[str, str]:
    """Return what a reader needs to compare figures, by label."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory / (1 << 30):.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "load before the run": f"{os.getloadavg()[0]:.2f}",
    }


def versions() -> dict[str, str]:
    """Return the version of Python and of each package, by name."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
