# Two commands set everything up on a fresh machine with Python 3.11 or newer:
#   make demo                        .venv, install, the worked example
#   make test                        .venv, install with the dev extra, the whole test command
# Name another interpreter with PYTHON=python3.13.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Two processes: the suite is sized for two cores.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: demo test nightly lint bench kernels clean

$(BIN)/envrate: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(BIN)/envrate
	$(BIN)/envrate demo

test: $(VENV)/.dev
	$(PYTEST)

nightly: $(VENV)/.dev
	$(PYTEST) -m nightly

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Numba's cache notices a change in a kernel's own file, not in those of the kernels that it calls.
kernels:
	find envrate -name '*.nb[ic]' -delete

clean: kernels
	rm -rf $(VENV) build dist *.egg-info
