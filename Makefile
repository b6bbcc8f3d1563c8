# `make demo` runs the main job, `make test` runs the tests; each sets up what it needs.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is made when something is first imported, and kept: most of what is installed never is.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check
WORKERS ?= 2
# Workers share the cores: a linear algebra library with threads of its own would wait for itself.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal --durations=20

.PHONY: demo test test-full quick lint types layers size unit golden attacks faults docs bench figures lock clean

demo: $(VENV)/.demo
	$(BIN)/shoal demo

# Types are checked beside the tests.
test: $(VENV)/.dev
	$(MAKE) --no-print-directory --jobs 2 lint types layers size unit

# Spark, all examples of the pages, full samples and parametrisations: by hand, before a release.
test-full: $(VENV)/.dev
	SHOAL_FULL=1 $(PYTEST) tests src studies/src docs README.md

# The tests of the folder you work in: `make quick AT=cells`.
quick: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) --dist worksteal tests/$(AT)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

size: $(VENV)/.dev
	$(BIN)/python -m tests.repository.size

unit: $(VENV)/.dev
	$(PYTEST)

# All decisions, sums, values and intervals that must stay the same.
golden: $(VENV)/.dev
	$(BIN)/python -m tests.golden

attacks: $(VENV)/.dev
	$(BIN)/python -m tests.attacks

faults: $(VENV)/.dev
	$(BIN)/python -m tests.attacks.faults $(if $(TEXT),"$(TEXT)")

docs: $(VENV)/.dev
	mkdir -p docs/reference
	$(BIN)/python docs/cli_reference.py docs/reference/cli.md
	$(BIN)/python docs/api_reference.py docs/reference/api.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

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
	$(PIP) -c requirements.lock --no-build-isolation -e '.[accounting,dossier,geo,ibis,pandas,pictures,polars,spark]' -e './studies[trials]' --group dev
	touch $@ $(VENV)/.demo $(VENV)/.studies
