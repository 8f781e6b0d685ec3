"""How kernels are compiled: entry points, what is inlined into them, and single instructions."""

# pyright: basic
# Reason: Numba's decorators carry no types.

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

import llvmlite
import numba.core.config
from numba import njit, types
from numba.extending import intrinsic

from mqlake.kernels.cache import cache_directory

config: Any = numba.core.config

ANY: Any = None
"""The type of a parameter that takes any argument: an array."""

BOUNDS_CHECKED = os.environ.get("MQLAKE_BOUNDSCHECK") == "1"
"""Check each load and store, `memory`'s included; an IndexError says that a kernel is wrong."""

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": BOUNDS_CHECKED}
CACHE = cache_directory(
    (
        numba.__version__,
        llvmlite.__version__,
        f"bounds checked: {BOUNDS_CHECKED}",
        f"cpu: {config.CPU_NAME} {config.CPU_FEATURES} {config.OPT}",
    )
)
"""Directory of the machine code; None if nothing can be written."""


_kernels: list[Any] = []
_configuring = Lock()
"""Threads import modules with kernels side by side, and Numba's setting is one for all."""


def compiled_count() -> int:
    """Return how often this process compiled a kernel instead of loading it from the cache."""
    return sum(sum(each.stats.cache_misses.values()) for each in _kernels)


def signatures() -> dict[str, int]:
    """Return for how many types of arguments each entry point has machine code in this process."""
    names = (f"{each.py_func.__module__}.{each.py_func.__qualname__}" for each in _kernels)
    return dict(zip(names, (len(each.signatures) for each in _kernels), strict=True))


def kernel(function: Callable[..., Any], *, nogil: bool = True) -> Any:
    """Compile an entry point on its first call, or load it from the cache."""
    options: dict[str, Any] = _OPTIONS | {"nogil": nogil}
    # Numba reads its setting here and only here. Ours must not move the caches of others.
    with _configuring:
        theirs, config.CACHE_DIR = config.CACHE_DIR, str(CACHE or "")
        try:
            made: Any = njit(cache=CACHE is not None, **options)(function)
        finally:
            config.CACHE_DIR = theirs
    _kernels.append(made)
    return made


def brief_kernel(function: Callable[..., Any]) -> Any:
    """Compile an entry point that keeps the interpreter's lock.

    To give it up and take it again takes 60 ns, a tenth of what such a kernel takes.
    """
    return kernel(function, nogil=False)


def is_cached(kernel: Any) -> bool:
    """Return whether the cache has machine code of an entry point; False without a cache."""
    function = kernel.py_func
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}-*.nbi"
    return CACHE is not None and next(CACHE.rglob(name), None) is not None


def compile_elsewhere(kernels: Iterable[Any], module: str) -> None:
    """Let another process fill the cache by running a module, unless all kernels are cached.

    Compiling blocks the interpreter, and thereby all other threads, for seconds.
    """
    if CACHE is not None and not all(map(is_cached, kernels)):
        subprocess.run(  # noqa: S603 (a module of this package)
            [sys.executable, "-m", module], check=False, capture_output=True
        )


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a part of kernels into each of its callers."""
    return njit(forceinline=True, **_OPTIONS)(function)


def outlined(function: Callable[..., Any]) -> Any:
    """Compile a rare part of kernels once a kernel, away from the hot path."""
    return njit(**_OPTIONS)(function)


def emitted(result: Any, *parameters: Any, emit: Callable[..., Any]) -> Any:
    """Make a function of kernels from the LLVM instructions that `emit` builds.

    `emit` gets the context, the builder, the types of the arguments and their values. A parameter
    ANY takes an argument of whatever type; a result ANY has the type of the first argument.
    """

    def typing(_context: Any, *arguments: Any) -> Any:
        kinds = [
            given if wanted is ANY else wanted
            for wanted, given in zip(parameters, arguments, strict=True)
        ]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            value = emit(context, builder, signature.args, values)
            return context.get_dummy_value() if result is types.void else value

        return (kinds[0] if result is ANY else result)(*kinds), generate

    # Numba asks how many arguments there are.
    names = ["context", *(f"argument_{place}" for place in range(len(parameters)))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    typing.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    return intrinsic(typing)
