# One command each, on a fresh machine with Python 3.11+, make and a package index.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help install test check format schema demo bench torture clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

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

bench: install ## the figures in the README
	$(BIN)/python benchmarks/engine.py

torture: install ## the long forms: 10,000 kills, a million operations, …
	$(BIN)/python -m pytest -q -m long tests/torture

clean: ## remove what was built
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis
