"""The compiled kernels: where their machine code is kept, and whether it is there."""

from __future__ import annotations

from mqlake.doctor.finding import CheckResult, Severity

WARM_UP = "python -m mqlake.dispatch.warm_up"


def kernels() -> CheckResult:
    """Report whether the kernels are compiled, and where they are kept."""
    try:
        from mqlake.dispatch.kernel import is_compiled

        if not is_compiled():
            found = "MQLAKE_KERNEL chooses the kernels in Python, which are slow"
            return CheckResult("kernels", Severity.NOTE, found, "unset MQLAKE_KERNEL")
        from mqlake.kernels.jit import CACHE
    except ModuleNotFoundError as error:
        found = f"{error.name} is not installed, so stores cannot be read"
        return CheckResult("kernels", Severity.NOTE, found, "pip install 'mqlake[store]'")
    if CACHE is None:
        found = "no directory can be written, so that each process compiles them again"
        mend = "set NUMBA_CACHE_DIR to a directory that nobody else can write"
        return CheckResult("kernels", Severity.PROBLEM, found, mend)
    count = sum(1 for _ in CACHE.rglob("*.nbi"))
    if not count:
        found = f"not compiled yet: the first command takes a minute longer (cache: {CACHE})"
        return CheckResult("kernels", Severity.NOTE, found, WARM_UP)
    return CheckResult("kernels", Severity.OK, f"{count} compiled, in {CACHE}")
