# Every target sets up its environment, so `make demo` and `make test` work directly after a clone.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
# pip of the environment that contains the target file: .venv or .venv-spark-VERSION.
PIP = $(@D)/bin/python -m pip install --quiet --disable-pip-version-check
READY := .venv/.ready
# The versions of Spark besides that of requirements.lock. Each has an environment of its own, in
# which requirements-spark-VERSION.lock overrides requirements.lock.
OTHER_SPARKS := 3.5 4.0 4.1 4.3
# Tests of streams, and tests that start a cluster, a broker or a browser, take minutes and have
# separate targets.
QUICK := -m 'not browser and not cluster and not kafka and not package and not streaming and not deployment and not real_time'
SPARK_TESTS := $(QUICK) tests/spark tests/deployment tests/apps src/steelyard/spark src/steelyard/deployment src/steelyard/apps

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 20

# The environment is created again when the lock file changes.
.venv/.pinned: requirements.lock
	@python=$$(scripts/find-python) && rm -rf .venv && "$$python" -m venv .venv
	@echo "Installing the pinned packages into .venv (a few minutes the first time)"
	@$(PIP) --requirement requirements.lock
	@touch $@

.venv-spark-%/.pinned: requirements.lock requirements-spark-%.lock
	@python=$$(scripts/find-python) && rm -rf $(@D) && "$$python" -m venv $(@D)
	@echo "Installing Spark $* into $(@D) (a few minutes the first time)"
	@awk -F == 'NR == FNR { named[$$1]; print; next } !($$1 in named)' \
		requirements-spark-$*.lock requirements.lock > $(@D)/requirements.lock
	@$(PIP) --requirement $(@D)/requirements.lock
	@touch $@

.venv-python-%/.pinned: requirements.lock
	@rm -rf $(@D) && python$* -m venv $(@D)
	@echo "Installing the pinned packages into $(@D) (a few minutes the first time)"
	@$(PIP) --requirement requirements.lock
	@touch $@

.PRECIOUS: .venv-spark-%/.pinned .venv-python-%/.pinned %/.ready
%/.ready: %/.pinned pyproject.toml
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: check-machine
check-machine: ## check that this machine has Python and Java
	@scripts/find-python > /dev/null
	@scripts/check-java

.PHONY: setup
setup: check-machine $(READY) ## create .venv with the pinned packages and this project

.PHONY: demo
demo: setup ## count a skewed stream on Spark, with some slow workers
	@$(BIN)/steelyard demo

.PHONY: demo-real-time
demo-real-time: check-machine .venv-spark-4.3/.ready ## compare groupings in Spark's real-time mode, with a live page (four minutes)
	@.venv-spark-4.3/bin/python -m benchmarks.real_time.demo

.PHONY: test
test: lint ## check style, types and layers, and run the tests with coverage
	@$(BIN)/python -m pytest $(QUICK) --numprocesses 2 --dist loadfile \
		--cov --cov-report=term --cov-fail-under=95

.PHONY: test-connect
test-connect: setup ## run the Spark tests through a Spark Connect server
	@$(BIN)/python -m pytest --connect $(SPARK_TESTS)

.PHONY: test-cluster
test-cluster: setup ## test a small cluster: killed executors and drivers, bad rows, lost control files
	@$(BIN)/python -m pytest -m 'cluster and not elastic' tests/spark
	@$(BIN)/python -m pytest --cluster -m faults tests/spark

.PHONY: test-elastic
test-elastic: setup ## run jobs and streams on a cluster whose executors come and go (ten minutes)
	@$(BIN)/python -m pytest -m elastic tests/spark

.PHONY: test-streaming
test-streaming: setup ## test streaming queries: exact results, restarts, lost control files
	@$(BIN)/python -m pytest -m 'streaming and not faults and not large' tests/spark tests/apps

.PHONY: test-large
test-large: setup ## test streams with more state than an executor has memory (about five minutes)
	@$(BIN)/python -m pytest --cluster -m large tests/spark

.PHONY: test-kafka
test-kafka: setup ## test counting from Kafka to Kafka, with a restart of the broker
	@$(BIN)/python -m pytest -m kafka tests/spark

.PHONY: test-real-time
test-real-time: check-machine .venv-spark-4.3/.ready ## test real-time mode with a broker: exact totals, restarts (five minutes)
	@.venv-spark-4.3/bin/python -m pytest -m real_time tests/spark

.PHONY: test-deployment
test-deployment: setup ## run a small version of the deployment experiment (ten minutes)
	@$(BIN)/python -m pytest -m deployment tests/deployment

.PHONY: test-browser
test-browser: setup ## test the dashboard in a browser
	@scripts/ensure-chromium > /dev/null
	@$(BIN)/python -m pytest -m browser tests/dashboard

.PHONY: test-package
test-package: setup ## install the wheel into an empty environment and run a first job there
	@$(BIN)/python -m pytest -m package tests

.PHONY: test-spark
test-spark: setup ## run the Spark tests on the Spark of requirements.lock
	@$(BIN)/python -m pytest $(SPARK_TESTS)

.PHONY: test-versions
test-versions: test-spark test-connect $(OTHER_SPARKS:%=test-spark-%) ## run the Spark tests on every version of Spark, classic and Connect (hours)

# The Spark tests on one version of Spark, such as `make test-spark-4.0`.
test-spark-%: check-machine .venv-spark-%/.ready
	@.venv-spark-$*/bin/python -m pytest $(SPARK_TESTS)
	@.venv-spark-$*/bin/python -m pytest --connect $(SPARK_TESTS)

# The quick tests on another version of Python, such as `make test-python-3.13`.
test-python-%: check-machine .venv-python-%/.ready
	@.venv-python-$*/bin/python -m pytest $(QUICK) --numprocesses 2 --dist loadfile

.PHONY: features
features: setup $(OTHER_SPARKS:%=.venv-spark-%/.ready) ## test every feature on every version of Spark, and write docs/versions.md
	@for bin in $(BIN) $(OTHER_SPARKS:%=.venv-spark-%/bin); do for mode in "" --connect; do \
		$$bin/python -m pytest $$mode tests/spark/test_features.py \
			--features docs/results/versions; done; done
	@scripts/features-table

.PHONY: test-oldest
test-oldest: check-machine .venv-spark-3.5/.ready ## run the tests marked `versions` on the oldest Spark
	@.venv-spark-3.5/bin/python -m pytest -m versions tests/spark

.PHONY: test-newest
test-newest: check-machine .venv-spark-4.3/.ready ## run the tests marked `versions` on the newest Spark, through Spark Connect
	@.venv-spark-4.3/bin/python -m pytest --connect -m versions tests/spark

.PHONY: test-all
test-all: test test-package test-browser test-cluster test-elastic test-streaming test-large test-kafka test-real-time test-deployment test-connect test-versions ## run all tests

.PHONY: deploy
deploy: setup ## run the paper's deployment on Spark and Kafka (two hours)
	@$(BIN)/steelyard deploy --out deployment

.PHONY: lint
lint: setup ## check style, types and import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: setup ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: bench
bench: setup ## measure every part of the core, as ratios to other implementations
	@$(BIN)/python -m benchmarks

.PHONY: bench-spark
bench-spark: setup ## compare the Spark layer with Spark's own operations (about an hour)
	@$(BIN)/python -m benchmarks.spark

.PHONY: bench-versions
bench-versions: setup $(OTHER_SPARKS:%=.venv-spark-%/.ready) ## compare repartition and join with Spark's own, on every version of Spark
	@for bin in $(BIN) $(OTHER_SPARKS:%=.venv-spark-%/bin); do \
		$$bin/python -m benchmarks.spark versions --rows 5000000 --repetitions 3; done

.PHONY: bench-streaming
bench-streaming: setup ## measure streams: slow workers, changes, overhead (about 40 minutes)
	@$(BIN)/python -m benchmarks.streaming

.PHONY: bench-real-time
bench-real-time: check-machine .venv-spark-4.3/.ready ## measure real-time mode: a hot key, slow workers, the limit (30 minutes)
	@.venv-spark-4.3/bin/python -m benchmarks.real_time

.PHONY: soak
soak: setup ## kill executors and drivers of a stream, then check it for leaks (15 minutes)
	@$(BIN)/python -m benchmarks.soak

.PHONY: screenshots
screenshots: setup ## take the pictures of the dashboard for docs/images
	@scripts/ensure-chromium > /dev/null
	@$(BIN)/python scripts/screenshots docs/images

.PHONY: notebook
notebook: setup ## run examples/first_steps.ipynb, and store its outputs there and in docs/first-steps.md
	@$(BIN)/python scripts/execute-notebook

.PHONY: figures
figures: setup ## draw the figures of the documentation
	@$(BIN)/python scripts/flow_figure.py docs/images

.PHONY: docs
docs: setup ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html"

.PHONY: build
build: setup ## write a wheel and a source distribution into dist/, and check both
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@$(BIN)/twine check --strict dist/*

.PHONY: lock
lock: setup ## write requirements.lock from the packages in .venv
	@$(BIN)/python -m pip freeze --all --exclude-editable --exclude pip > requirements.lock

.PHONY: clean
clean: ## remove caches and compiled loops
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage build dist site
	@find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +
