"""In which order, and by which process of pytest-xdist, the files of a run are tested."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

SPARKS_OF_THEIR_OWN = (
    "tests/peer/test_spark_cluster.py",
    "tests/spark/test_cluster.py",
    "tests/spark/test_cds.py",
    "tests/spark/test_connect.py",
    "tests/spark/test_kernel_cache.py",
    "tests/spark/test_session.py",
    "tests/spark/follow/test_killed.py",
    "tests/spark/sql/test_restart.py",
    "tests/cli/test_jobs.py",
)
"""Files that start a Spark: it closes the session that other files share in the same process."""

FIRST = (
    "tests/spark/",
    "tests/crash/test_crash.py",
    "tests/simulation/test_simulation.py",
    "tests/test_distribution.py",
    *SPARKS_OF_THEIR_OWN,
)
"""Files that take a minute, which would run alone in the end if they began last."""

SHARED_SPARK = (
    "tests/spark/",
    "tests/cli/test_convert.py",
    "tests/peer/test_dead_letters_on_s3.py",
    "tests/peer/test_lake_on_clouds.py",
    "tests/peer/test_lake_on_s3.py",
)
"""Files that share one session, which takes twenty seconds of processor time to open."""

SHARED_TREES = "tests/structure/"
"""Files that share the syntax trees of the whole package, which take seconds to parse."""

SHARED_BROWSER = "tests/peer/console/"
"""Files that share a browser and the clusters that it looks at."""

_FOLDERS = (SHARED_TREES, SHARED_BROWSER)


def place(nodeid: str) -> int:
    """Return how early a test runs: those with the same number keep their order."""
    scope = scope_of(nodeid)
    if scope == SHARED_SPARK[0]:
        return 0
    return FIRST.index(scope) if scope in FIRST else len(FIRST)


def scope_of(nodeid: str) -> str:
    """Return what is tested in one process: the test's file, or all that share something."""
    path = nodeid.partition("::")[0]
    if path.startswith(SHARED_SPARK) and path not in SPARKS_OF_THEIR_OWN:
        return SHARED_SPARK[0]
    return next((each for each in _FOLDERS if path.startswith(each)), path)


class Scheduling(LoadFileScheduling):
    """Let one process have each file, and all files that share something."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
