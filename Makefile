# Every target sets up what it needs; `make demo` and `make test` work straight after a clone.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PINNED := .venv/.pinned
READY := .venv/.ready

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 16

# The environment is made anew when the pins change.
$(PINNED): requirements.lock
	@python=$$(scripts/find-python) && rm -rf .venv && "$$python" -m venv .venv
	@echo "Installing the pinned packages into .venv (a few minutes the first time)"
	@$(PIP) --requirement requirements.lock
	@touch $@

$(READY): $(PINNED) pyproject.toml
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: check-machine
check-machine: ## say what this machine lacks, if anything
	@scripts/find-python > /dev/null
	@scripts/check-java

.PHONY: setup
setup: check-machine $(READY) ## make .venv with the pinned packages and this project in it

.PHONY: demo
demo: setup ## route a skewed stream by every scheme and compare them
	@$(BIN)/steelyard demo

.PHONY: test
test: lint ## lint, types, layers, and all tests with coverage
	@$(BIN)/python -m pytest --cov --cov-report=term --cov-fail-under=95

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

.PHONY: lock
lock: setup ## write requirements.lock from what .venv holds
	@$(BIN)/python -m pip freeze --all --exclude-editable --exclude pip > requirements.lock

.PHONY: clean
clean: ## remove caches, compiled loops included
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage build dist
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
