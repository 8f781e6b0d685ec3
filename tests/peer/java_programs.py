"""Build all Java programs of an ordinary run: `python -m tests.peer.java_programs`.

Each alone would take a start of Maven and of javac.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.peer.java_build import JavaMissingError, Program, build_all
from tests.peer.rocketmq_client import NEWEST, NEWEST_4
from tests.peer.rocketmq_cluster import NEWEST_4_BROKER

HERE = Path(__file__).parent
NEWEST_STORE, NEWEST_KAFKA = "5.5.1", "4.4.0"
PROGRAMS = tuple(
    Program(HERE / name, version)
    for name, versions in {
        "grpc/programs/grpc_java": (None,),
        "hdfs": (None,),
        "kafka": (NEWEST_KAFKA,),
        "rocketmq": (None, NEWEST_STORE),
        "rocketmq_acl": (NEWEST,),
        "rocketmq_broker": (None,),
        "rocketmq_client": (NEWEST, NEWEST_4),
        "rocketmq_cluster": (None, NEWEST_4_BROKER),
        "rocketmq_controller": (None,),
        "rocketmq_examples": (None,),
        "rocketmq_filter": (None,),
        "rocketmq_grpc_java": (None,),
        "rocketmq_it": (None,),
        "rocketmq_plain_acl": (NEWEST_4,),
        "rocketmq_proxy": (None,),
        "rocketmq_rows": (NEWEST, NEWEST_4),
    }.items()
    for version in versions
)
"""What tests that are not nightly ask for: one that is missing here is built when it is needed."""


def main() -> None:
    """Build them; say in a line what is missing, as tests that need it are skipped."""
    try:
        build_all(PROGRAMS)
    except JavaMissingError as reason:
        print(f"each Java program is built by the first test that needs it: {reason}")
    except subprocess.CalledProcessError as error:
        print(error, error.stdout, error.stderr, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
