"""python -m tests.client.hostile_broker: clients of a broker that answers nonsense."""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time

from tests.client.hostile_broker import page
from tests.client.hostile_broker.case import Outcome, command, run
from tests.client.hostile_broker.virtual_loop import LONGEST
from tests.seeds import first_seed, tell_violations

NIGHTLY = 1_000_000


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.client.hostile_broker")
    parser.add_argument(
        "--nightly",
        action="store_true",
        help=f"{NIGHTLY:,} mutated answers; writes docs/reliability.md",
    )
    parser.add_argument("--answers", type=int, help="mutated answers in all; else one case")
    parser.add_argument("--seed", type=int, help="the first seed; by default the day's")
    arguments = parser.parse_args()
    seed = first_seed(arguments.seed)
    wanted = arguments.answers or (NIGHTLY if arguments.nightly else 1)
    outcomes: list[Outcome] = []
    mutated, begun = 0, time.monotonic()
    while mutated < wanted:
        # A loop that never ends cannot be interrupted: it says where it is, and the process ends.
        faulthandler.dump_traceback_later(2 * LONGEST, exit=True)
        print(f"\r{mutated:,} answers, seed {seed} ", end="", file=sys.stderr, flush=True)
        outcomes.append(run(seed))
        mutated += outcomes[-1].mutated
        _tell(outcomes[-1])
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    if arguments.nightly:
        page.write(outcomes, time.monotonic() - begun)
    violations = sum(len(outcome.violations) for outcome in outcomes)
    print(f"\n{len(outcomes)} cases, {mutated:,} mutated answers, {violations} violations")
    return 1 if violations else 0


def _tell(outcome: Outcome) -> None:
    tell_violations(outcome.violations, command(outcome.seed))


if __name__ == "__main__":
    sys.exit(main())
