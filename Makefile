# `make demo` runs the main job, `make test` runs every test; each sets up what it needs.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is made when something is first imported: most of what is installed never is.
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check
WORKERS ?= 2

.PHONY: demo test quick lint types layers unit docs prove faults golden evidence bench figures lock clean

demo: $(VENV)/.demo
	$(BIN)/shoal demo

# Types are checked beside the tests.
test: $(VENV)/.dev
	$(MAKE) --no-print-directory --jobs 2 lint types layers unit docs

quick: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "unit and not property" tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

prove: $(VENV)/.dev
	SHOAL_PROVE=1 $(BIN)/pytest -n $(WORKERS) --dist loadfile

faults: $(VENV)/.dev
	$(BIN)/python -m tests.evidence.seeded $(if $(TEXT),"$(TEXT)")

golden: $(VENV)/.dev
	$(BIN)/python -m tests.golden

evidence: $(VENV)/.dev
	$(BIN)/python -m tests.evidence --workers $(WORKERS)

bench: $(VENV)/.studies
	$(BIN)/shoal bench noise
	$(BIN)/shoal bench aggregate --rows 100000000
	$(BIN)/shoal bench plan

figures: $(VENV)/.studies
	$(BIN)/shoal study run all --folder figures --force

lock: $(VENV)/.dev
	$(BIN)/uv pip compile pyproject.toml studies/pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--no-emit-index-url --no-emit-package shoal --no-header --no-annotate --output-file requirements.lock

clean:
	rm -rf $(VENV) site dist build shoal-demo figures

$(VENV)/.made: requirements.lock
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) -c requirements.lock hatchling editables
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(PIP) -c requirements.lock --no-build-isolation -e '.[pictures]'
	touch $@

$(VENV)/.studies: $(VENV)/.demo studies/pyproject.toml
	$(PIP) -c requirements.lock --no-build-isolation -e './studies[trials]'
	touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml studies/pyproject.toml
	$(PIP) -c requirements.lock 'pip>=25.1' setuptools wheel
	$(PIP) -c requirements.lock --no-build-isolation -e '.[accounting,geo,pandas,pictures,polars,spark]' -e './studies[trials]' --group dev
	touch $@ $(VENV)/.demo $(VENV)/.studies

.PHONY: guarantees
guarantees: $(VENV)/.dev
	$(BIN)/python -m tests.repository.guarantee_table

.PHONY: house
house: $(VENV)/.dev
	$(BIN)/python -m tests.repository.house

.PHONY: size
size: $(VENV)/.demo
	$(BIN)/python -m tests.repository.install_size

.PHONY: cli-page
cli-page: $(VENV)/.dev
	$(BIN)/python -m tests.repository.cli_reference docs/reference/cli.md
