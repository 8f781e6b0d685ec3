"""python -m tests.grpc.abuse: abuse a server of gRPC, or repeat one abuse."""

from __future__ import annotations

import sys

from tests.grpc.abuse import page
from tests.grpc.abuse.run import run
from tests.seeds import main

if __name__ == "__main__":
    sys.exit(main("tests.grpc.abuse", "clients", run, page.write))
