# Every target sets up what it needs; `make demo` and `make test` work straight after a clone.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
# Of the environment whose file is being made: .venv, or .venv-latest.
PIP = $(@D)/bin/python -m pip install --quiet --disable-pip-version-check
READY := .venv/.ready
LATEST := .venv-latest/.ready
# Streams, and those that start clusters, brokers or browsers of their own, take minutes: they have
# targets of their own.
QUICK := -m 'not browser and not cluster and not kafka and not package and not streaming and not deployment'
SPARK_TESTS := $(QUICK) tests/spark tests/deployment tests/apps src/steelyard/spark src/steelyard/deployment src/steelyard/apps

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 20

# The environment is made anew when the pins change.
.venv/.pinned: requirements.lock
	@python=$$(scripts/find-python) && rm -rf .venv && "$$python" -m venv .venv
	@echo "Installing the pinned packages into .venv (a few minutes the first time)"
	@$(PIP) --requirement requirements.lock
	@touch $@

# The newest Spark among otherwise the same pins: what requirements-latest.lock names takes the
# place of what requirements.lock says of it.
.venv-latest/.pinned: requirements.lock requirements-latest.lock
	@python=$$(scripts/find-python) && rm -rf .venv-latest && "$$python" -m venv .venv-latest
	@echo "Installing the newest Spark into .venv-latest (a few minutes the first time)"
	@awk -F == 'NR == FNR { named[$$1]; print; next } !($$1 in named)' \
		requirements-latest.lock requirements.lock > $(@D)/requirements.lock
	@$(PIP) --requirement $(@D)/requirements.lock
	@touch $@

$(READY) $(LATEST): %/.ready: %/.pinned pyproject.toml
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: check-machine
check-machine: ## say what this machine lacks, if anything
	@scripts/find-python > /dev/null
	@scripts/check-java

.PHONY: setup
setup: check-machine $(READY) ## make .venv with the pinned packages and this project in it

.PHONY: demo
demo: setup ## count a skewed stream on Spark, by workers of which some are slow
	@$(BIN)/steelyard demo

.PHONY: test
test: lint ## lint, types, layers, and the tests with coverage
	@$(BIN)/python -m pytest $(QUICK) --numprocesses 2 --dist loadfile \
		--cov --cov-report=term --cov-fail-under=95

.PHONY: test-connect
test-connect: setup ## the Spark tests through a Spark Connect server
	@$(BIN)/python -m pytest --connect $(SPARK_TESTS)

.PHONY: test-cluster
test-cluster: setup ## kill executors and drivers of a small cluster, poison rows, lose control files
	@$(BIN)/python -m pytest -m cluster tests/spark
	@$(BIN)/python -m pytest --cluster -m faults tests/spark

.PHONY: test-streaming
test-streaming: setup ## streaming queries: exact results, restarts, lost control files
	@$(BIN)/python -m pytest -m 'streaming and not faults and not large' tests/spark tests/apps

.PHONY: test-large
test-large: setup ## streams with more state than an executor has memory (about five minutes)
	@$(BIN)/python -m pytest --cluster -m large tests/spark

.PHONY: test-kafka
test-kafka: setup ## count from Kafka to Kafka, with a broker that is restarted on the way
	@$(BIN)/python -m pytest -m kafka tests/spark

.PHONY: test-deployment
test-deployment: setup ## a small version of the deployment experiment (ten minutes)
	@$(BIN)/python -m pytest -m deployment tests/deployment

.PHONY: test-browser
test-browser: setup ## the dashboard in a real browser
	@scripts/ensure-chromium > /dev/null
	@$(BIN)/python -m pytest -m browser tests/dashboard

.PHONY: test-package
test-package: setup ## install the wheel into an empty environment and run a first job there
	@$(BIN)/python -m pytest -m package tests

.PHONY: test-latest
test-latest: check-machine $(LATEST) ## the Spark tests, and some of streams, on the newest Spark
	@.venv-latest/bin/python -m pytest $(SPARK_TESTS)
	@.venv-latest/bin/python -m pytest tests/spark/streaming/test_results.py

.PHONY: test-latest-connect
test-latest-connect: check-machine $(LATEST) ## the Spark tests on the newest Spark through Connect: both at once
	@.venv-latest/bin/python -m pytest --connect $(SPARK_TESTS)
	@.venv-latest/bin/python -m pytest tests/spark/streaming/test_results.py

.PHONY: test-all
test-all: test test-package test-browser test-cluster test-streaming test-large test-kafka test-deployment test-latest test-connect ## all

.PHONY: deploy
deploy: setup ## the paper's deployment on Spark and Kafka (two hours)
	@$(BIN)/steelyard deploy --out deployment

.PHONY: lint
lint: setup ## check style, types and import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: setup ## put the code into the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: bench
bench: setup ## measure every part of the core, as ratios to peers
	@$(BIN)/python -m benchmarks

.PHONY: bench-spark
bench-spark: setup ## measure the Spark layer against Spark's own ways (about an hour)
	@$(BIN)/python -m benchmarks.spark

.PHONY: bench-streaming
bench-streaming: setup ## measure streams: slow workers, changes, overhead (about 40 minutes)
	@$(BIN)/python -m benchmarks.streaming

.PHONY: soak
soak: setup ## kill executors and drivers of a stream, then watch it for leaks (15 minutes)
	@$(BIN)/python -m benchmarks.soak

.PHONY: screenshots
screenshots: setup ## take the dashboard's pictures for docs/images
	@scripts/ensure-chromium > /dev/null
	@$(BIN)/python scripts/screenshots docs/images

.PHONY: figures
figures: setup ## draw the figures of the documentation
	@$(BIN)/python scripts/flow_figure.py docs/images

.PHONY: docs
docs: setup ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

.PHONY: build
build: setup ## write a wheel and a source distribution into dist/, and check both
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@$(BIN)/twine check --strict dist/*

.PHONY: lock
lock: setup ## write requirements.lock from what .venv holds
	@$(BIN)/python -m pip freeze --all --exclude-editable --exclude pip > requirements.lock

.PHONY: clean
clean: ## remove caches, compiled loops included
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage build dist site
	@find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +
