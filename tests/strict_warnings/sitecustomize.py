"""Turn warnings about deprecated features into errors if mqlake or the program itself causes them.

Options of Python and PYTHONWARNINGS cannot name all modules of a package.
"""

from __future__ import annotations

import sys
import warnings

_OURS = r"mqlake(\.|$)"
_PROGRAM = r"__main__$"
_IS_PROGRAM = "-m" not in sys.orig_argv
"""Whether the main module is a program, and not, for example, the daemon of Spark's workers."""

for _kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
    warnings.filterwarnings("error", category=_kind, module=_OURS)
    if _IS_PROGRAM:
        warnings.filterwarnings("error", category=_kind, module=_PROGRAM)
