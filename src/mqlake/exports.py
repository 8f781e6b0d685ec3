"""What a package exports: names that are imported when they are first used.

Importing a package must cost nothing, because kernels, Arrow and Spark may be missing or not
needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

EXTRAS = {
    "duckdb": "duckdb",
    "jinja2": "console",
    "llvmlite": "store",
    "numba": "store",
    "numpy": "store",
    "polars": "polars",
    "pyarrow": "parquet",
    "pyspark": "spark",
    "starlette": "console",
    "uvicorn": "console",
}
"""The extra of mqlake that installs a package, for packages that whole layers need."""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return what to install if a package of an extra is missing, in one line; None otherwise."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return f"{package} is not installed: pip install 'mqlake[{EXTRAS[package]}]'"


def import_of_extra(name: str) -> Any:
    """Return a module whose package an extra installs.

    Raises:
        ModuleNotFoundError: it is missing; the message says what to install.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if missing := missing_extra(error):
            raise ModuleNotFoundError(missing, name=error.name) from None
        raise


def lazy_exports(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose names its submodules define.

    Args:
        package: its `__name__`.
        modules: the module that defines each name: relative to the package, or its full name.
    """

    def find(name: str) -> object:
        if name == "__all__":  # For `from package import *`.
            return sorted(modules)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(full_name(package, modules[name]))
        except ModuleNotFoundError as error:
            if missing := missing_extra(error):
                raise ModuleNotFoundError(f"{package}: {missing}", name=error.name) from None
            raise
        value: object = getattr(module, name)
        # From now on the name is found without this function.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return find, names


def full_name(package: str, module: str) -> str:
    """Return the full name of a module that is named as for `lazy_exports`."""
    root = __name__.partition(".")[0]
    return module if module.startswith(f"{root}.") else f"{package}.{module}"
