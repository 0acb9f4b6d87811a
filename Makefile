# Everything a user or CI runs. Each target sets up what it needs; the second time is quick.
#
#   make demo     the main job, live in the terminal
#   make check    lint and the quick tests, in about a minute
#   make test     all tests: lint, native with sanitizers, Python, short crash and model campaigns
#   make help     the rest

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BUILD  := build
PIP_ARGS ?=
PROVE_OPS ?= 100M
PROVE_KINDS ?= bounded growing overwriting slots events

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

NATIVE_SOURCES := $(shell find native tests/native -type f) meson.build meson.options
PACKAGE_SOURCES := $(shell find native src -type f -not -name '*.pyc') meson.build meson.options pyproject.toml

.PHONY: help setup check test demo bench bench-spark lint docs crash prove native sanitizers pythons free-threaded \
  lock wheels clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

$(VENV)/.tools: pyproject.toml tools/setup.py tools/locked.txt
	@$(PYTHON) tools/setup.py $(VENV)
	@touch $@

$(VENV)/.package: $(VENV)/.tools $(PACKAGE_SOURCES)
	@echo "building queueduct"
	@# without make's flags: they name descriptors that ninja does not get
	@rm -f $(BUILD)/wheel/*
	@MAKEFLAGS= $(BIN)/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir $(BUILD)/wheel \
	  --config-settings=build-dir=$(BUILD)/python $(PIP_ARGS) .
	@$(BIN)/pip install --quiet --no-deps --force-reinstall $(BUILD)/wheel/queueduct-*.whl
	@touch $@

$(VENV)/.bench: $(VENV)/.package
	@echo "installing the peers to measure against"
	@$(BIN)/python tools/setup.py --extra bench $(VENV)
	@touch $@

$(VENV)/.wheels: $(VENV)/.tools
	@echo "installing what makes wheels"
	@$(BIN)/python tools/setup.py --extra wheels --together $(VENV)
	@touch $@

# after the package: two installations at a time into one environment disturb each other
$(VENV)/.spark: $(VENV)/.tools | $(VENV)/.package
	@echo "installing Spark: 450 MB, a few minutes the first time"
	@$(BIN)/python tools/setup.py --extra spark --together $(VENV)
	@$(BIN)/python tools/setup.py --extra plot --together $(VENV)
	@echo "installing what reads Arrow in the tests: DuckDB and polars, 80 MB"
	@$(BIN)/python tools/setup.py --extra test-arrow --together $(VENV)
	@touch $@

# what the tests of the live views are driven with; where it cannot be had, they are skipped
$(VENV)/.browser: $(VENV)/.tools tools/browser.sh | $(VENV)/.package
	@echo "installing a browser and a terminal for the tests: 400 MB the first time"
	@tools/browser.sh
	@touch $@

$(VENV)/.docs: $(VENV)/.tools | $(VENV)/.package
	@echo "installing Sphinx, MyST and furo"
	@$(BIN)/python tools/setup.py --extra docs --together $(VENV)
	@touch $@

setup: $(VENV)/.package ## virtual environment, build tools, the package

lint: $(VENV)/.package $(VENV)/.spark ## ruff, mypy and stubtest
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@tools/stubtest.sh

native: $(VENV)/.tools ## native unit tests
	@tools/native.sh plain

sanitizers: $(VENV)/.tools ## native tests under ASan + UBSan, and under TSan
	@tools/native.sh address
	@tools/native.sh thread

check: $(VENV)/.package $(VENV)/.spark ## lint and the quick tests, in about a minute
	@tools/check.sh

docs: $(VENV)/.package $(VENV)/.docs ## the documentation as a site in build/docs; the path of its first page is printed
	@$(BIN)/python -m docs.site

test: ## all tests
	@$(MAKE) --no-print-directory -j 2 lint native
	@$(MAKE) --no-print-directory $(VENV)/.browser $(VENV)/.docs
	@tools/tests.sh

pythons: ## the quick tests on every other Python from 3.11 on that is installed, or in Debian testing
	@tools/pythons.sh

free-threaded: $(VENV)/.package $(VENV)/.spark ## the quick tests and the thread stress on a Python 3.13 without a GIL, built here
	@tools/free_threaded.sh

lock: $(VENV)/.tools ## renew tools/locked.txt, the versions and hashes of all that set-up installs
	@$(BIN)/python tools/setup.py --extra lock --together $(VENV)
	@tools/lock.sh

wheels: $(VENV)/.wheels ## the sdist, and from it a wheel for every Python that can be had here, into dist/
	@tools/wheels.sh $(WHEELS)

demo: $(VENV)/.package $(VENV)/.spark ## the main job, live
	@$(BIN)/queueduct demo --out $(BUILD)/demo

bench: $(VENV)/.bench $(NATIVE_SOURCES) ## ours and the peers in one run; BENCH_ARGS=--quick for the short form
	@tools/native.sh bench
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

bench-spark: $(VENV)/.package $(VENV)/.spark ## source and sink beside Spark's own; BENCH_ARGS=--quick for the short form
	@$(BIN)/python -m benchmarks.spark $(BENCH_ARGS)

crash: $(VENV)/.package $(VENV)/.spark ## the long crash campaigns and model searches
	@tools/native.sh crash
	@$(BIN)/python -m models --all --long
	@$(BIN)/python -m pytest tests --ignore=tests/fuzz --ignore=tests/models --ignore=tests/spark --long
	@$(BIN)/python -m pytest tests/spark --long

prove: $(VENV)/.package $(VENV)/.spark ## stress and check every kind of queue, more than an hour; PROVE_OPS=1M for the short form
	@tools/prove.sh $(PROVE_OPS) $(PROVE_KINDS)

clean: ## remove everything that was made
	@rm -rf $(BUILD) dist .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
