# Lace: bare `make` lists what there is to do.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check bench clauses docs format clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

test: check ## set everything up, then lint, types and every test
	$(RUN) -m pytest -n auto --dist loadgroup

check: $(STAMP) ## lint, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(STAMP) ## let ruff rewrite what it can
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clauses: $(STAMP) ## which clauses of the specifications no test names
	$(RUN) tools/clauses.py

clean: ## remove everything that was made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist demo-out
