# A newcomer needs make demo, make check and make test; each creates .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
SPARK_TESTS ?= tests/spark
NEWEST := build/newest-spark
OTHER  := build/newest-python
SEED   := $(shell date +%j)
SHORT  := $(addprefix tests/spark/,source/test_spark.py source/test_streams.py reading sink/test_spark.py follow/test_follow.py test_query_metrics.py)
PORTABLE := $(addprefix tests/,formats dispatch kernels protocol remoting storage store broker namesrv client jobs cli kafka)
BROKERS := $(addprefix tests/,broker remoting attacks budget chaos client comparison crash odd programs replica replication slow_machine tls)

# Tests that start no JVM, no server process and no kernel compilation: for the inner loop.
FAST   := tests/documents tests/formats tests/protocol tests/storage tests/namesrv \
          tests/cli/test_reference.py tests/cli/test_text.py tests/test_front_doors.py

# Otherwise each of the many processes that tests start compiles every module again: a second each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help env demo check test all-tests peers docs lint style types layers fast format cluster-test slow-machine-test ordinary-path-test newest-spark-test newest-python-test wheel-test nightly bench lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

env: $(STAMP)  ## create .venv with everything that the project needs

$(STAMP): requirements.lock pyproject.toml scripts/make-env src/mqlake/__init__.py
	@PYTHON=$(PYTHON) scripts/make-env $(VENV)
	@touch $@

demo: $(STAMP)  ## rebuild a store that RocketMQ wrote, and compare it with RocketMQ's own files and answers
	@$(BIN)/python examples/demo.py

check: $(STAMP)  ## lint and the fast tests, side by side on two cores, in less than 90 s
	@$(MAKE) --no-print-directory -j 2 --output-sync=target types fast

# The type checker uses one core, and installing waits for the network: the tests run beside both.
test: $(STAMP) style layers  ## lint and all tests, except the nightly ones
	@$(MAKE) --no-print-directory -j 2 types all-tests

# Many tests wait for servers: on two cores, two more processes use the idle time. Each Spark starts in
# half the time with the archive of its classes, which other environments may have replaced.
all-tests: $(STAMP) peers
	@$(BIN)/python -m mqlake.spark.cds
	@$(BIN)/python -m tests.peer.java_programs
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

peers:  ## install Java, Maven, Go, Node.js, Prometheus and HAProxy for the tests against the real systems
	@scripts/install-peers

lint: style types layers  ## check style, types and layers

style: $(STAMP)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(STAMP)
	@$(BIN)/pyright

layers: $(STAMP)
	@$(BIN)/lint-imports

fast: style layers
	@$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder $(FAST)

format: $(STAMP)  ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

cluster-test: $(STAMP)  ## test jobs, Spark sources and sinks on a Spark cluster of two workers, while workers and brokers are killed
	CLUSTER_TEST_MIB=512 $(BIN)/pytest -n 0 -m '' tests/spark/test_cluster.py tests/peer/test_spark_cluster.py

slow-machine-test: $(STAMP)  ## run the tests with random delays: SEED=1; finds tests that depend on the speed of the machine
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder --slow-machine $(SEED) -m 'not nightly and not peer'

ordinary-path-test: $(STAMP)  ## run the tests of brokers without the lane: the results are the same
	MQLAKE_LANE=off $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder -m 'not nightly and not peer' $(BROKERS)

newest-spark-test: $(STAMP)  ## run the Spark tests with the newest PySpark: SPARK_TESTS=tests/spark/source
	@PYTHON=$(PYTHON) scripts/make-env $(NEWEST)
	$(NEWEST)/bin/uv pip install --quiet --no-deps --upgrade --python $(NEWEST)/bin/python pyspark
	$(NEWEST)/bin/python -m mqlake.spark.cds
	$(NEWEST)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder $(SPARK_TESTS)

newest-python-test:  ## run the tests without Spark with another Python: PYTHON=python3.14
	@PYTHON=$(PYTHON) scripts/make-env $(OTHER)
	$(OTHER)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not nightly and not peer and not spark' $(PORTABLE)

wheel-test: $(STAMP)  ## install the wheel on another Python, and follow the quickstart there: PYTHON=python3.13
	$(BIN)/python -m tests.cli.first_hour $(PYTHON)

nightly: $(STAMP)  ## run the long proofs; writes docs/reliability.md
	$(BIN)/python -m tests.attacks --nightly
	$(BIN)/python -m tests.budget --nightly
	$(BIN)/python -m tests.hostile --nightly
	$(BIN)/python -m tests.auth.forgeries --nightly
	$(BIN)/python -m tests.broker.in_use --nightly
	$(BIN)/python -m tests.grpc.abuse --nightly
	$(BIN)/python -m tests.tls.handshakes --nightly
	$(BIN)/python -m tests.crash --nightly
	$(BIN)/python -m tests.comparison --nightly
	$(BIN)/python -m tests.spark.follow --nightly
	$(BIN)/python -m tests.spark.follow.hour --nightly
	$(BIN)/python -m tests.spark.union --nightly
	$(BIN)/python -m tests.client.faults --nightly
	$(BIN)/python -m tests.client.hostile_broker --nightly
	$(BIN)/python -m tests.simulation --nightly
	$(BIN)/python -m tests.simulation.group --nightly
	$(BIN)/python -m tests.peer.mixed_groups --nightly
	$(BIN)/python -m tests.peer.spark_cluster --nightly
	$(BIN)/python -m tests.peer.compatibility --nightly
	$(BIN)/python -m tests.peer.large_store --nightly
	$(BIN)/python -m tests.kombu.kills --nightly
	$(BIN)/python -m tests.peer.grpc.kills --nightly
	$(BIN)/python -m tests.replication --nightly
	$(BIN)/python -m tests.replication --controller --nightly
	$(BIN)/python -m tests.replica --nightly
	STATEFUL_EXAMPLES=4000 $(BIN)/pytest -q -n 0 --timeout 7200 tests/store/test_stateful.py
	TOUCHED_SEEDS=60 $(BIN)/pytest -q -n 0 --timeout 7200 tests/lake/tables/test_others.py
	MIXED_SCRIPTS=20000 $(BIN)/pytest -q -n 0 tests/broker/lane/mixed
	ODD_SEEDS=20 ODD_MESSAGES=400 $(BIN)/pytest -q -n 0 --timeout 7200 tests/odd
	$(BIN)/pytest -q -n 0 -m nightly
	@$(MAKE) --no-print-directory slow-machine-test
	@$(MAKE) --no-print-directory ordinary-path-test
	@$(MAKE) --no-print-directory newest-spark-test SPARK_TESTS="$(SHORT)"

bench: $(STAMP)  ## run the benchmarks; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

docs: $(STAMP)  ## build the documentation site into build/site, offline
	$(BIN)/sphinx-build -q -W --keep-going -j auto -c scripts/site . build/site
	@echo "build/site/index.html"

lock:  ## pin the newest versions of all packages in requirements.lock
	@mkdir -p build
	echo 'pyspark==4.2.0' > build/constraints.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --extra spark --extra connect --extra kafka --extra avro --extra protobuf --extra delta --extra iceberg --extra uvloop --extra tls --extra acl --extra celery --extra taskiq --extra polars --extra duckdb --extra hdfs --extra metrics --extra otlp --extra rocksdb --extra console --group dev --constraints build/constraints.txt \
		--output-file requirements.lock --upgrade pyproject.toml

clean:  ## remove everything that the targets created
	rm -rf $(VENV) build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
