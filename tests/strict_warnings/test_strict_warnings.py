"""The programs of the documentation use nothing that is deprecated."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.strict_warnings import strict_environment

WARN = 'import warnings; warnings.warn_explicit("old", {}, "file", 1, module="{}")'


@pytest.mark.parametrize(
    ("kind", "module", "fails"),
    [
        ("DeprecationWarning", "__main__", True),
        ("FutureWarning", "mqlake.spark.session", True),
        ("PendingDeprecationWarning", "mqlake", True),
        ("DeprecationWarning", "pyspark.sql.session", False),
        ("FutureWarning", "mqlake_of_others", False),
        ("UserWarning", "__main__", False),
    ],
)
def test_only_deprecations_of_ours_and_of_the_program_are_errors(
    kind: str, module: str, *, fails: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WARN.format(kind, module)],
        env={**os.environ, **strict_environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert bool(done.returncode) == fails, done.stderr
    assert (f"{kind}: old" in done.stderr) == (fails or kind != "DeprecationWarning")
