# The vocabulary of this project; `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
SETUP := $(VENV)/.made
LOADERS := $(BIN)/python -m loaders

TORCH ?= torch==2.13.0
ENGINES := $(VENV)/.engines-$(shell printf %s "$(TORCH)" | tr -c a-zA-Z0-9.+ -)
SITE := .asv/html
MINUTES ?= 4
# Several tests at a time: mostly they wait, for imports, deadlines and processes.
TESTS ?= -n 3 --dist worksteal
SLOW_TESTS ?= -n 4 --dist worksteal
MARKED ?= not slow
export BASE ?= main

.DEFAULT_GOAL := help
.PHONY: help setup engines bench full test test-slow test-short lint format check check-perf report pages evidence readme clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{ printf "  make %-13s %s\n", $$1, $$2 }'

setup: $(SETUP) ## Make .venv with everything in it

$(SETUP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11, 3.12 or 3.13 is needed, this is %d.%d; name one: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[report]' --group dev
	@touch $@

engines: $(ENGINES) ## Install what is compared with TensorFlow: other engines, decoders, torch

# torch for Linux is gigabytes of CUDA on PyPI; a CPU build is taken where pip finds one of this version.
$(ENGINES): $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[engines]'
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	@rm -f $(VENV)/.engines*
	@touch $@

bench: setup ## Compare on photographs, 4 minutes at a time: make bench MINUTES=15; shows where the page is
	@# Exit code 1 says that a strategy went wrong, which the page shows; anything else stops here.
	$(LOADERS) compare --minutes $(MINUTES) || [ $$? -eq 1 ]
	$(LOADERS) report
	@echo "Open it. make bench goes on where this stopped, or measures anew if nothing is left."

full: setup ## Run the full suite under asv, hours; interrupted, the same command continues
	@$(BIN)/python -m benchmarks._full

test: setup ## Run the tests that take less than ten minutes together
	$(BIN)/python -m pytest $(TESTS) -m '$(MARKED)'

test-slow: ## Run the others: whole commands, clusters, kills; a change must pass them too
	@$(MAKE) --no-print-directory MARKED=slow TESTS='$(SLOW_TESTS)' test

test-short: ## Test what depends on the version of Python: make test-short PYTHON=python3.12
	@# These tests import a small part of what is installed: compiling all of it would take longer than they do.
	@version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])') && \
		PIP_COMPILE=0 $(MAKE) --no-print-directory VENV=.venv-$$version TESTS= MARKED=python test

lint: setup ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: setup ## Mend style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

check: setup ## Let asv check the benchmarks in an environment that it manages
	$(BIN)/asv check

check-perf: setup ## Is the working tree slower or fatter than BASE (main)? CHECK='--minutes 20' says more
	$(LOADERS) check "$$BASE" --markdown .asv/check/summary.md $(CHECK)

report: setup ## Write the comparison page from the trial logs
	$(LOADERS) report

pages: setup ## Write asv's site with the comparison page in it, as it is deployed
	$(BIN)/asv publish
	@for file in index.html comparison.html comparison.csv trial.schema.json; do \
		test -s "$(SITE)/$$file" || { echo "$(SITE)/$$file is missing or empty" >&2; exit 1; }; \
	done
	@echo "open $(CURDIR)/$(SITE)/comparison.html, or all of it: $(BIN)/asv preview"

evidence: engines ## Repeat what must be repeated to be believed, hours; interrupted, measuring continues
	@# Exit code 1 says that a count misses its target, or that a check raised a false alarm; the page shows which.
	$(LOADERS) selftest --subject tensorflow || [ $$? -eq 1 ]
	$(LOADERS) selftest --start || [ $$? -eq 1 ]
	$(LOADERS) selftest --faults || [ $$? -eq 1 ]
	$(LOADERS) compare known_issues --case data=paths --size full --rounds 20 || [ $$? -eq 1 ]
	LOADERS_KILLS=100 $(BIN)/python -m pytest tests/test_kill.py tests/questions/test_service.py -k random_moments -s
	LOADERS_CASES=all LOADERS_ENGINES=1 $(BIN)/python -m pytest tests/test_contract.py -k delivers
	LOADERS_PROBES=all LOADERS_SIMULATIONS=all $(BIN)/python -m pytest tests/probe/test_probe.py tests/test_evidence.py -s
	$(LOADERS) evidence

readme: setup ## Renew the README's table, its picture, docs/results.md and probe's cures from the published results
	$(LOADERS) readme

clean: ## Remove .venv and what asv has built; results stay
	rm -rf $(VENV) .venv-* .asv
