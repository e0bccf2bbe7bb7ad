# The vocabulary of this project; `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
SETUP := $(VENV)/.made
LOADERS := $(BIN)/python -m loaders

.DEFAULT_GOAL := help
.PHONY: help setup bench test lint format report readme publish check clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{ printf "  make %-10s %s\n", $$1, $$2 }'

setup: $(SETUP) ## Make .venv with everything in it

$(SETUP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11, 3.12 or 3.13 is needed, this is %d.%d; name one: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

bench: setup ## Compare all strategies on photographs, a quick look; shows where the page is
	@# Exit code 1 says that a strategy went wrong, which the page shows; anything else stops here.
	$(LOADERS) compare --quick || [ $$? -eq 1 ]
	$(LOADERS) report

test: setup ## Run the tests
	$(BIN)/python -m pytest

lint: setup ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: setup ## Mend style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

check: setup ## Let asv check the benchmarks in an environment that it manages
	$(BIN)/asv check

report: setup ## Write the comparison page from the trial logs
	$(LOADERS) report

publish: setup ## Write asv's site with the comparison page in it
	$(BIN)/asv publish

readme: setup ## Renew the README's table and picture from the published results
	$(LOADERS) readme

clean: ## Remove .venv and what asv has built; results stay
	rm -rf $(VENV) .asv
