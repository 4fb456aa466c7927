# One command each, on a fresh machine with Python 3.11+, make and a package index.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BENCH  := .venv-bench

.PHONY: help install test check format schema demo bench bench-peers torture fuzz clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

install: $(VENV)/.installed ## make the virtual environment

check: install ## format, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: check ## every check and test, on all cores
	$(BIN)/python -m pytest -q -n auto --dist worksteal

format: install ## format and sort imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schema: install ## write schema.sql from the tables
	$(BIN)/python -m sessiontree.store.ddl > schema.sql.new && mv schema.sql.new schema.sql

demo: install ## the main job, on real input
	$(BIN)/sessiontree demo

bench: install ## the figures and charts in docs/benchmarks; QUICK=1 prints a small run
	$(BIN)/python benchmarks/engine.py $(if $(QUICK),--quick)

$(BENCH)/.installed: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

bench-peers: $(BENCH)/.installed ## the same work by other frameworks' stores, side by side; QUICK=1
	$(BENCH)/bin/python benchmarks/compare.py $(if $(QUICK),--quick)

torture: install ## the long forms: 10,000 kills, a million operations, …
	$(BIN)/python -m pytest -q -m long -n 2 --dist worksteal tests/torture

fuzz: install ## 100,000 damaged files through every importer, on all cores
	$(BIN)/python -m pytest -q -m long -n auto --dist worksteal tests/transfer/test_fuzz.py

clean: ## remove what was built
	rm -rf $(VENV) $(BENCH) dist build .pytest_cache .ruff_cache .hypothesis
