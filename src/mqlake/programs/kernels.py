"""Load the kernels before the first message arrives, and release what only loading needed."""

from __future__ import annotations

import ctypes
import logging
import mmap
import time
from collections.abc import Iterator
from pathlib import Path

from mqlake.dispatch import warm_up
from mqlake.dispatch.kernel import is_compiled
from mqlake.kernels.first_use import tell_first_use
from mqlake.pace import noted

_MAPS = Path("/proc/self/maps")
_COMPILER = "libllvmlite"
_CODE = "r-xp"

_log = logging.getLogger(__name__)


def load_kernels() -> None:
    """Load the kernels of a live store, which would otherwise delay the first message.

    Afterwards the compiler, about 50 MiB of machine code in memory, is no longer called. Its pages
    are returned to the system: code is never written to, so it is read from its file again if
    necessary.
    """
    begin = time.perf_counter()
    if is_compiled():
        tell_first_use(_log.info)
    with noted(_note):
        warm_up.load(export=False)
    if count := _compiled_count():
        seconds = time.perf_counter() - begin
        _log.info("%d kernels compiled in %.0f s; the next start loads them", count, seconds)
    if not _MAPS.exists():
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for begin, end in _code_of(_COMPILER):
        advise(begin, end - begin, mmap.MADV_DONTNEED)


def _note(seconds: float) -> None:
    """Log how many kernels this process has compiled, or that it still loads them."""
    if count := _compiled_count():
        _log.info("compiling kernel %d, %.0f s", count, seconds)
    else:
        _log.info("loading kernels, %.0f s", seconds)


def _compiled_count() -> int:
    """Return how many kernels were not in the cache."""
    if not is_compiled():
        return 0
    from mqlake.kernels import jit  # Imported late: without compiled kernels, Numba is not loaded.

    return jit.compiled_count() if jit.CACHE is not None else 0


def _code_of(library: str) -> Iterator[tuple[int, int]]:
    for line in _MAPS.read_text().splitlines():
        addresses, access, *_, name = line.split(maxsplit=5)
        if access == _CODE and Path(name).name.startswith(library):
            begin, _, end = addresses.partition("-")
            yield int(begin, 16), int(end, 16)
