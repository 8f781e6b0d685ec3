"""Run a test in simulated time: nothing waits, and no load of the machine changes what happens.

`run` takes the place of `asyncio.run` wherever the subject is neither a socket, nor a process, nor
a thread. Timers and timeouts count simulated seconds, connections are simulated, and jobs of
executors run in the loop, as those of a store's disk do. The files are real.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from mqlake.client import instance
from mqlake.store.loop import service_task
from tests.simulation.inputs import replaced
from tests.simulation.loop import SimulatedLoop
from tests.simulation.network import Network
from tests.simulation.process import Process
from tests.simulation.run import end_run

T = TypeVar("T")

_MACHINE = "127.0.0.1"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that runs alone on a simulated machine.

    Raises:
        SimulationError: it waits for something that cannot happen any more, or never ends.
    """
    loop = SimulatedLoop(random.Random("loop"))
    loop.network = network = Network(loop, random.Random("network"))
    intervals = {
        "look": service_task.LOOK_INTERVAL,
        "routes": instance.ROUTE_INTERVAL,
        "heartbeats": instance.HEARTBEAT_INTERVAL,
    }

    async def in_process() -> T:
        return await Process("test", _MACHINE).create_task(work)

    with replaced(loop, "test", intervals=intervals):
        try:
            return loop.run_until_complete(in_process())
        finally:
            end_run(loop, network)
