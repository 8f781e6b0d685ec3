"""python -m tests.peer.grpc.kills: kill a broker and a proxy under official clients."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.peer.grpc.driver import ALL_COMMANDS
from tests.peer.grpc.kills import page
from tests.peer.grpc.kills.run import KILLS, Outcome, command, run
from tests.peer.grpc.kills.servers import SETUPS
from tests.seeds import first_seed, tell_violations


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.grpc.kills")
    parser.add_argument("--nightly", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--kills", type=int, default=KILLS, help="of each setup")
    parser.add_argument("--seed", type=int, help="another one each day without it")
    parser.add_argument("--setup", nargs="+", default=list(SETUPS), choices=SETUPS, metavar="SETUP")
    parser.add_argument("--languages", nargs="+", default=list(ALL_COMMANDS), choices=ALL_COMMANDS)
    arguments = parser.parse_args()
    seed = first_seed(arguments.seed)

    def run_one(setup: str) -> Outcome:
        outcome = run(seed, setup, arguments.languages, arguments.kills, _tell)
        print(f"\n{outcome}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(arguments.setup)) as threads:
        outcomes = list(threads.map(run_one, arguments.setup))
    for outcome in outcomes:
        tell_violations(outcome.violations, command(outcome))
    if arguments.nightly:
        page.write(outcomes)
    kills = sum(outcome.kills.total() for outcome in outcomes)
    violations = sum(len(outcome.violations) for outcome in outcomes)
    print(f"{kills} kills, {violations} violations")
    return 1 if violations else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
