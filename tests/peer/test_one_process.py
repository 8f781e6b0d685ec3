"""RocketMQ's Python client runs in one process with a broker: their messages do not clash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.peer import python_build

PROGRAM = Path(__file__).with_name("one_process.py")


@pytest.mark.peer
def test_a_producer_and_a_consumer_run_beside_the_broker_for_tests() -> None:
    try:
        python = python_build.environment(PROGRAM.with_name("rocketmq_grpc_python"))
    except python_build.PythonMissingError as reason:
        pytest.skip(str(reason))
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    command = [sys.executable, "-P", str(PROGRAM), str(packages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['a payment', 'an order']", done.stderr
