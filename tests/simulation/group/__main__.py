"""python -m tests.simulation.group: run groups of brokers in simulated time, with faults."""

from __future__ import annotations

import sys

from tests.simulation.command_line import Simulation
from tests.simulation.group import page
from tests.simulation.group.plan import draw
from tests.simulation.group.run import run
from tests.simulation.group.total import Total, run_all


def _show(seed: int) -> list[str]:
    print(draw(seed))
    print(outcome := run(seed, logs=True))
    return outcome.violations


SIMULATION = Simulation(
    "python -m tests.simulation.group",
    nightly=100_000,
    at_once=50,
    count=Total,
    run_all=run_all,
    show=_show,
    write=page.write,
)

if __name__ == "__main__":
    sys.exit(SIMULATION.main())
