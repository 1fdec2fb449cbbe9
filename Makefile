# make run    serve a sample index at http://127.0.0.1:8000
# make test   lint, types and tests: some minutes
# make lint   lint and types, as make test does beside the tests
# make collections  download the public test collections; use them with KLSA_COLLECTIONS=build/collections
# make test-long  all tests, including browsers, processes, faults and packages, with coverage: an hour; a pass is recorded in tests/long-passed.txt
# make test-connect  the tests of the integrations, which make test skips; 525 MB and three minutes to install
# make test-cluster  the tests of clusters, with Ray
# make test-all  the tests on each Python from 3.11 to 3.14 that is found
# make test-package  build wheel and sdist into dist/, check them, and try them in an empty environment
# make sanitized  the tests of the extension module, with AddressSanitizer and UBSan: half an hour; needs GCC
# make fuzz   call its functions with damaged arguments, INPUTS of them, with the same checks
# make test-oldest, make test-newest  the tests with the oldest allowed dependencies, with the newest
# make speed  compare the time of searches with commit BASE, by default that of a day ago
# make lock   regenerate requirements/; UPGRADE=--upgrade takes the newest versions
# make docs   build the documentation site into build/docs; broken links are errors
# make docs-serve  serve it at http://127.0.0.1:8001, with search by klsa-serve
# make eval   measure MAP of BM25, LSI, the published method and the default
# make clean  remove the environments and everything that was built
# make help   this list

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv --quiet
INSTALL := $(UV) pip install --python $(BIN)/python
# Commands read it; KLSA_PORT and other settings of klsa-serve are passed on, too.
export KLSA_HOME ?= index
ifneq ($(wildcard ../shared/collections),)
export KLSA_COLLECTIONS ?= ../shared/collections
endif
TARGETS ?= cran cran-1837 cisi cacm med
VERSIONS ?= 3.11 3.12 3.13 3.14

.PHONY: help run test tests lint collections test-long speed lock test-oldest test-newest test-cluster test-connect test-all test-package sanitized sanitized-module fuzz docs docs-serve eval clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p' Makefile

# uv takes no settings from pip, except for the index of packages in the environment.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

# pip installs uv, and uv the rest in a tenth of the time. uv has wheels for all platforms that SciPy
# has wheels for. One stamp per set of packages: uv runs again only when its file changes.
# The pip of PYTHON, if it has one, does so at once: that of a new environment is compiled for seconds.
$(BIN)/uv: requirements/uv.txt
	@if $(PYTHON) -c 'import pip' 2> /dev/null; \
	  then $(PYTHON) -m venv --without-pip $(VENV) && pip="$(PYTHON) -m pip --python $(BIN)/python"; \
	  else $(PYTHON) -m venv $(VENV) && pip="$(BIN)/python -m pip"; fi && \
	  $$pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: --require-hashes -r $<
	@touch $@

# The sources of the extension module, which is built again when one of them changes.
NATIVE := $(wildcard klsa_search/native/*.[ch]pp klsa_search/native/*/*.[ch]pp) build_backend.py setup.py

# `make run` compiles it for this machine only, in a quarter less time.
$(VENV)/.module-here: export KLSA_NATIVE = 1
$(VENV)/.module $(VENV)/.module-here: pyproject.toml $(NATIVE) | $(BIN)/uv
	$(INSTALL) --no-deps --reinstall-package klsa-search --editable .
	@touch $@

# The dependencies, and those of the tests, in the versions and with the hashes of requirements/, so
# that uv need not find out which versions go together.
$(VENV)/.dependencies: requirements/run.txt | $(BIN)/uv
	$(INSTALL) --no-deps --require-hashes -r requirements/run.txt
	@touch $@

$(VENV)/.tools: requirements/test.txt | $(BIN)/uv
	$(INSTALL) --no-deps --require-hashes -r requirements/test.txt
	@touch $@

# The module is compiled while uv downloads the dependencies.
$(VENV)/.installed: pyproject.toml requirements/run.txt $(NATIVE)
	@echo "Installing klsa-search and its dependencies into $(VENV) ..."
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.dependencies $(VENV)/.module-here
	@touch $@

$(VENV)/.installed-test: pyproject.toml requirements/test.txt $(NATIVE)
	@echo "Installing klsa-search and the tools of its tests into $(VENV) (about a minute) ..."
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.tools $(VENV)/.module
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-connect: pyproject.toml | $(BIN)/uv
	$(INSTALL) --editable '.[test-connect]'
	@touch $@

$(VENV)/.installed-cluster: pyproject.toml | $(BIN)/uv
	$(INSTALL) --editable '.[test-cluster]'
	@touch $@

# The same tools, with the oldest dependencies of klsa-search that pyproject.toml allows.
$(VENV)/.installed-oldest: requirements/oldest.txt $(VENV)/.installed-test
	$(INSTALL) --no-deps --require-hashes -r requirements/oldest.txt
	@touch $@

# The newest versions of everything.
$(VENV)/.installed-newest: pyproject.toml | $(BIN)/uv
	$(INSTALL) --editable '.[test]'
	@touch $@ $(VENV)/.installed-test

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/uv
	$(INSTALL) --editable '.[docs]'
	@touch $@ $(VENV)/.installed

run: $(VENV)/.installed
	@ls "$$KLSA_HOME"/*/CURRENT 2>/dev/null | grep -q . || \
	  [ -n "$$KLSA_FOLLOW" ] || \
	  $(BIN)/klsa-index build python-docs --name python-docs --language english
	@exec $(BIN)/klsa-serve

# Bytecode is kept even where the environment says not to: many tests start Python, and the service
# imports what the build of the sample has imported.
run test tests: export PYTHONDONTWRITEBYTECODE =

# Lint and types are checked beside the tests; what they say comes after.
test: $(VENV)/.installed-test
	@mkdir -p build
	@$(MAKE) --no-print-directory lint > build/lint.txt 2>&1 & lint=$$!; trap "kill $$lint" INT TERM; \
	  $(MAKE) --no-print-directory tests; tests=$$?; \
	  wait $$lint; lint=$$?; cat build/lint.txt; [ $$tests$$lint = 00 ]

collections: $(VENV)/.installed-test
	$(BIN)/klsa-eval fetch cran cisi cacm med --data build/collections

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(filter %pp,$(NATIVE))
	@if [ -x $(BIN)/biome ]; then $(BIN)/biome lint; else echo 'biome: not for this platform, JavaScript is not linted'; fi
	$(BIN)/mypy

# A module runs in one worker, which builds what its tests share once. Processor time is that of
# worksteal within what a busy machine allows to see (61 s against 65 s and 59 s for 1,600 tests).
# By default, modules of one test come last, which are the longest: one worker waits for the other.
tests: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder \
	  -m 'not slow and not browser and not external'
	@$(BIN)/python -m tools.long_tests

# All tests, with 100 examples of each property; coverage goes to build/coverage.
# On Python 3.11 coverage sometimes cannot trace a thread that starts while another one does.
test-long: export HYPOTHESIS_PROFILE = long
test-long: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations=50 --timeout 3600 \
	  --cov --cov-report=term:skip-covered --cov-report=html:build/coverage
	@$(BIN)/python -m tools.long_tests record test-long

# In an environment of its own: other tests must run without these tools.
test-connect:
	@$(MAKE) --no-print-directory $(VENV)-connect/.installed-connect VENV=$(VENV)-connect
	$(VENV)-connect/bin/python -m pytest -n 2 tests/connect tests/collection tests/project/test_guide_commands.py
	@$(VENV)-connect/bin/python -m tools.long_tests record test-connect

# In an environment of its own: Ray and the checks of manifests are large.
test-cluster:
	@$(MAKE) --no-print-directory $(VENV)-cluster/.installed-cluster VENV=$(VENV)-cluster
	$(VENV)-cluster/bin/python -m pytest -n 2 --dist loadgroup tests/cluster tests/docker
	@$(VENV)-cluster/bin/python -m tools.long_tests record test-cluster

# An environment for each version; a shim of pyenv may exist and start nothing.
test-all:
	@for version in $(VERSIONS); do \
	  found=; \
	  for python in python$$version "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
	    if "$$python" -c '' 2>/dev/null; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then echo "Python $$version: skipped, it is not found here"; continue; fi; \
	  echo "Python $$version: $$found"; \
	  $(MAKE) --no-print-directory tests PYTHON="$$found" VENV=.venv-$$version || exit 1; \
	done

test-oldest:
	@$(MAKE) --no-print-directory .venv-oldest/.installed-oldest VENV=.venv-oldest
	@$(MAKE) --no-print-directory tests VENV=.venv-oldest

test-newest:
	@$(MAKE) --no-print-directory .venv-newest/.installed-newest VENV=.venv-newest
	@$(MAKE) --no-print-directory tests VENV=.venv-newest

# In an environment with only the tools for building and checking.
test-package:
	@$(MAKE) --no-print-directory $(VENV)-package/bin/uv VENV=$(VENV)-package
	$(VENV)-package/bin/uv pip install --quiet --python $(VENV)-package/bin/python \
	  'build>=1.2' 'cyclonedx-bom>=7' 'twine>=6.1'
	rm -rf dist
	$(VENV)-package/bin/python -m build --outdir dist
	$(VENV)-package/bin/twine check --strict dist/*.whl dist/*.tar.gz
	$(VENV)-package/bin/cyclonedx-py requirements --pyproject pyproject.toml --mc-type library \
	  --output-reproducible --output-file dist/klsa-search.cdx.json requirements/run.txt
	$(VENV)-package/bin/python -m benchmarks.package --none dist/*.whl

# A copy of the package whose module checks itself. Python does not, so libraries are loaded first.
SANITIZED := $(CURDIR)/build/sanitized
CHECKED = env LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0:handle_abort=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:$(UBSAN) \
  PYTHONPATH=$(SANITIZED):$(CURDIR) $(BIN)/python -P
SANITIZED_TESTS ?= tests/native tests/search/engine tests/search/test_snippets.py tests/search/test_partitions.py tests/storage tests/delta tests/kernels tests/lowrank tests/analysis
sanitized-module: $(VENV)/.installed-test
	rm -rf $(SANITIZED)/klsa_search
	KLSA_SANITIZE=1 $(BIN)/python setup.py -q build --build-base $(SANITIZED) --build-lib $(SANITIZED)

# With Python's allocator, accesses outside of bytes objects would not be noticed.
sanitized: export PYTHONMALLOC = malloc
sanitized: sanitized-module
	$(CHECKED) -m pytest --import-mode=append $(SANITIZED_TESTS)
	$(CHECKED) -m tools.golden check

INPUTS ?= 1000000
fuzz: UBSAN = suppressions=$(CURDIR)/tools/fuzz_native.supp
fuzz: sanitized-module
	$(CHECKED) -m tools.fuzz_native --inputs $(INPUTS)

# Both search one index that BASE built of the docstrings of Python; figures go to build/speed.
BASE ?= $(shell git rev-list -1 --before=1.day.ago HEAD)
speed: $(VENV)/.installed-test
	@mkdir -p build/speed && rm -rf build/speed/*
	git archive --prefix=build/speed/base/ "$(BASE)" | tar -x
	cut -f 1,2 studies/front_page/questions.tsv > build/speed/queries.tsv
	cd build/speed/base && PYTHONPATH=. $(abspath $(BIN))/python -P -c \
	  'from klsa_search.cli.index import main; main()' build python-docs --name docs --home ../index
	$(BIN)/python -m benchmarks.turns build/speed/index/docs build/speed/queries.tsv build/speed/base . \
	  --json build/speed/figures.json

# Dependencies by version and hash: for the tests, for `make run` and the image, and the oldest
# allowed. These leave out pip, which uv.txt has.
LOCK = $(UV) pip compile --universal --python-version 3.11 \
  --generate-hashes --no-strip-extras --no-emit-index-url --no-annotate \
  --custom-compile-command 'make lock' $(UPGRADE)
lock: $(BIN)/uv
	printf 'pip\nuv\n' | $(LOCK) - --output-file requirements/uv.txt
	$(LOCK) --no-emit-package pip pyproject.toml --extra test --output-file requirements/test.txt
	$(LOCK) --no-emit-package pip pyproject.toml --extra eval --constraint requirements/test.txt --output-file requirements/run.txt
	$(LOCK) --no-emit-package pip pyproject.toml --extra estimators --extra eval --extra figures --extra files --extra remote --resolution lowest-direct \
	  --output-file requirements/oldest.txt

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs build/docs

docs-serve: export KLSA_DOCS_SERVICE = http://127.0.0.1:8000
docs-serve: docs
	$(BIN)/klsa-index build build/docs/sections.jsonl --name docs --home build/docs-index
	@$(BIN)/python -m http.server 8001 --bind 127.0.0.1 -d build/docs & pages=$$!; \
	  trap "kill $$pages" EXIT; \
	  $(BIN)/klsa-serve --home build/docs-index --port 8000 --read-only --cors-origin http://127.0.0.1:8001

eval: $(VENV)/.installed
	$(BIN)/klsa-eval map $(TARGETS)

clean:
	rm -rf $(VENV) $(VENV)-* .venv-* build dist *.egg-info klsa_search/_native.*.so klsa_search/_native.pyi
