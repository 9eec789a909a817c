# Everything here works on a machine that has Python 3.11 or newer and pip, and nothing else:
# uv is taken from PATH, or installed by pip into .uv/; the environment is .venv/, from uv.lock.

.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

BIN := .venv/bin
UV = $$(sh tools/find-uv.sh)
STAMP := .venv/.synced
JOBS ?= 2
MINUTES ?= 10
PYTEST = JOBS=$(JOBS) sh tools/pytest.sh
GROUPS = setup lint types unit slow browser

# The lock decides what is installed, whatever the machine's pip is told.
unexport PIP_CONSTRAINT PIP_REQUIRE_VIRTUALENV PYTHONPATH PYTHONHOME VIRTUAL_ENV UV_PROJECT_ENVIRONMENT

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv from uv.lock, with everything

$(STAMP): pyproject.toml uv.lock tools/find-uv.sh tools/sync.sh
	@sh tools/sync.sh
	@touch $(STAMP)

demo: $(STAMP) ## Run the story: two frameworks, one held call, one ledger
	@rm -rf .demo
	@$(BIN)/agent-adapter demo --keep .demo $(ARGS)

test: ## Run everything that must pass, a sample of each large suite, and print the minutes
	@MAKE="$(MAKE)" sh tools/groups.sh $(GROUPS)

test-all: ## Run everything that must pass, each suite at its full size
	@MAKE="$(MAKE)" FULL=1 sh tools/groups.sh $(GROUPS)

unit: $(STAMP) ## Run the tests that are neither slow nor in a browser
	@sh tools/postgres.sh
	@$(PYTEST) -m "not slow and not browser"

slow: $(STAMP) ## Run the slow tests: kills, races, simulations, workloads
	@sh tools/postgres.sh
	@$(PYTEST) -m "slow and not browser"

browser: $(STAMP) ## Run the tests that drive the console in a browser
	@sh tools/browser.sh
	@$(PYTEST) -m browser

verified: $(STAMP) ## Run the unit tests and verify every store that they leave
	@$(PYTEST) -p tests.verified_stores -m "not slow and not browser"

lint: $(STAMP) ## Check style, format, layers and change notes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(STAMP) ## Check types strictly
	$(BIN)/mypy

format: $(STAMP) ## Put the code into the house's format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(STAMP) ## Measure side by side with the frameworks' own tools
	$(BIN)/python -m benchmarks

soak: $(STAMP) ## Run a mixed load for 10 minutes (MINUTES=…), fail on growth
	$(BIN)/python -m workloads.soak --minutes $(MINUTES)

agentdojo: $(STAMP) ## Measure the policies with AgentDojo's 97 tasks and 949 attacks, an hour
	$(BIN)/python -m workloads.agentdojo --write agentdojo.json $(ARGS)

corpora: $(STAMP) ## Put BFCL's functions and public MCP servers' tools through every target
	$(BIN)/python -m workloads.corpora $(ARGS)

docs: $(STAMP) ## Build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

nox: $(STAMP) ## Run the nox sessions, each in a fresh environment
	PATH="$$(dirname "$(UV)"):$$PATH" $(BIN)/nox

clean: ## Remove what was built, not what was written
	rm -rf .venv .uv .nox .demo site dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache


.PHONY: help setup demo test test-all unit slow browser verified lint types format bench soak agentdojo corpora docs nox clean
