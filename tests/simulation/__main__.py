"""python -m tests.simulation: run clients and brokers in simulated time, with faults from seeds."""

from __future__ import annotations

import sys

from tests.simulation import page
from tests.simulation.command_line import Simulation
from tests.simulation.plan import draw
from tests.simulation.run import run
from tests.simulation.total import Total, run_all


def _show(seed: int) -> list[str]:
    print(draw(seed))
    print(outcome := run(seed, logs=True))
    return outcome.violations


SIMULATION = Simulation(
    "python -m tests.simulation",
    nightly=200_000,
    at_once=100,
    count=Total,
    run_all=run_all,
    show=_show,
    write=page.write,
)

if __name__ == "__main__":
    sys.exit(SIMULATION.main())
