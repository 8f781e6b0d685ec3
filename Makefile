# make demo and make test are all that a newcomer needs; each makes .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
NEWEST := build/newest-spark

.PHONY: help env demo test lint format cluster-test newest-spark-test nightly bench lock clean

help:  ## say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

env: $(STAMP)  ## make .venv with everything the project needs

$(STAMP): requirements.lock pyproject.toml scripts/make-env
	@PYTHON=$(PYTHON) scripts/make-env $(VENV)
	@touch $@

demo: $(STAMP)  ## rebuild a store that RocketMQ wrote, and compare with RocketMQ's own answers
	@$(BIN)/python examples/demo.py

test: $(STAMP) lint  ## everything that a change can break
	$(BIN)/pytest -n 2 --dist loadgroup

lint: $(STAMP)  ## style, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(STAMP)  ## put the code into the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

cluster-test: $(STAMP)  ## jobs, Spark source and sink on a cluster of two workers, one of which is killed
	CLUSTER_TEST_MIB=512 $(BIN)/pytest -n 0 tests/spark/test_cluster.py tests/spark/test_cluster_jobs.py

newest-spark-test: $(STAMP)  ## the tests of Spark with the newest PySpark instead of the pinned one
	@PYTHON=$(PYTHON) scripts/make-env $(NEWEST)
	$(NEWEST)/bin/uv pip install --quiet --no-deps --upgrade --python $(NEWEST)/bin/python pyspark
	$(NEWEST)/bin/python -m mqlake.spark.cds
	$(NEWEST)/bin/pytest -n 2 --dist loadgroup tests/spark

nightly: $(STAMP)  ## the long proofs; writes docs/reliability.md
	$(BIN)/python -m tests.attacks --nightly
	$(BIN)/python -m tests.hostile --nightly
	$(BIN)/python -m tests.crash --nightly
	$(BIN)/python -m tests.spark.follow --nightly
	$(BIN)/python -m tests.spark.follow.hour --nightly
	$(BIN)/python -m tests.client.faults --nightly
	$(BIN)/python -m tests.client.hostile_broker --nightly
	$(BIN)/python -m tests.simulation --nightly
	$(BIN)/python -m tests.peer.mixed_groups --nightly
	$(BIN)/python -m tests.peer.compatibility --nightly
	$(BIN)/python -m tests.kombu.kills --nightly
	$(BIN)/python -m tests.replication --nightly
	STATEFUL_EXAMPLES=4000 $(BIN)/pytest -q -n 0 --timeout 7200 tests/store/test_stateful.py
	ODD_SEEDS=20 ODD_MESSAGES=400 $(BIN)/pytest -q -n 0 --timeout 7200 tests/odd
	$(BIN)/pytest -q -n 0 -m nightly

bench: $(STAMP)  ## measure beside the Java store; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

lock:  ## pin the newest packages in requirements.lock
	@mkdir -p build
	echo 'pyspark==4.2.0' > build/constraints.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --extra spark --extra connect --extra kafka --extra avro --extra protobuf --extra delta --extra iceberg --extra uvloop --extra celery --extra taskiq --extra polars --extra duckdb --group dev --constraints build/constraints.txt \
		--output-file requirements.lock --upgrade pyproject.toml

clean:  ## remove what the targets made
	rm -rf $(VENV) build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
