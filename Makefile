# make run    serve a sample index at http://127.0.0.1:8000
# make test   lint, types and tests
# make eval   MAP of BM25, LSI, the published method and the default
# make help   this list

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PORT   ?= 8000
HOME_OF_INDEXES ?= index
TARGETS ?= cran cran-1837 cisi cacm med

.PHONY: help run test eval clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p' Makefile

# One stamp a set of extras: pip runs again only when pyproject.toml changes.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-eval: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[eval]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-eval

run: $(VENV)/.installed
	@ls $(HOME_OF_INDEXES)/*/CURRENT >/dev/null 2>&1 || \
	  $(BIN)/klsa-index build python-docs --name python-docs --home $(HOME_OF_INDEXES)
	@exec $(BIN)/klsa-serve --home $(HOME_OF_INDEXES) --port $(PORT)

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2

eval: $(VENV)/.installed-eval
	$(BIN)/klsa-eval map $(TARGETS)

clean:
	rm -rf $(VENV) build *.egg-info
