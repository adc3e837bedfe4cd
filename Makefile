# Two commands on a fresh Debian or Ubuntu with Python 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTEST ?= $(BIN)/pytest

.PHONY: demo test check lint clean

demo: $(VENV)/.installed
	@$(BIN)/unveil demo

# The tests start a hundred processes: without kept bytecode each would compile everything anew.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed-dev
	@$(PYTEST) -m "not slow" -q -n auto --dist loadgroup

check:
	@.ci/run

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

$(VENV)/bin/python:
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt install python3-venv"; exit 1; }

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	@echo "installing unveil into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	@echo "installing unveil and its test tools into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
