# Every target is self-contained: on first use it creates the virtual environment and installs its dependencies.
#   make demo   check examples/char_gpt, train it and a whole step compiled     (no sudo)
#   make test   run all Python tests
SHELL  := /bin/bash
# The first interpreter that starts (a version manager's shim may not).
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do $$p -c '' 2>/dev/null && echo $$p && break; done)
VENV   ?= .venv
BIN    := $(VENV)/bin
# The version of CI and of the published figures; any supported one works: make demo TORCH=torch==2.12.0
TORCH  ?= torch==2.13.0
JOBS   ?= 2
# Of the search for differences.
MINUTES ?= 20
# Of the report on a CUDA device.
GPU_MINUTES ?= 9
PYTEST_ARGS ?=

# Tests and examples are measured on two cores; more threads would only compete.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help compiler demo test test-slow test-exhaustive test-engine test-version test-stdlib test-gpu gpu-report soundness lint types format docs site bench findings e2e pictures vsix dist try-dist extension clean

help:
	@echo "make demo       check the character GPT example, then train it compiled"
	@echo "make test       Python tests            make test-slow what takes long (Inductor)"
	@echo "make test-exhaustive  more of what the slow tests and the search draw from, 30 minutes"
	@echo "make test-gpu   tests on a CUDA device  make e2e       the extension in a real VS Code"
	@echo "make gpu-report  tests and measurements on a CUDA device in 9 minutes (PYTHON=python3: without an environment)"
	@echo "make test-version PYTHON=python3.13 TORCH=torch==2.15.0  the engine's tests on another pair (tests/versions/RESULTS.md)"
	@echo "make test-stdlib    CPython's own tests, with every frame instrumented"
	@echo "make soundness MINUTES=20   search for differences with a fresh seed (tests/soundness/README.md)"
	@echo "make lint       ruff, imports, deps     make types     mypy --strict"
	@echo "make findings   precision and recall of the findings over their corpus"
	@echo "make bench      speed table and JSON    make docs      run the tour, build the site strictly"
	@echo "make site       the pages as a site to read offline, in lsp_server/site (magpy-lsp docs --open)"
	@echo "make vsix       build the VS Code extension            make clean     remove what was built"
	@echo "make dist       wheel, sdist and extension in dist       make try-dist  try them in empty environments"
	@echo "make pictures   make the screenshots of README and documentation again"

# -------------------------------------------------------------- environment

# On Debian, venv's pip is in the package python3-venv; without it, pip installs itself into the new environment.
$(VENV)/.venv-made:
	@"$(PYTHON)" -c '' 2>/dev/null \
	  || { echo "No Python that starts: install Python 3.11 to 3.14, or say make PYTHON=/path/to/python3.11"; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' \
	  || { echo "$(PYTHON) is $$("$(PYTHON)" --version): MagPy needs Python 3.11 to 3.14 (make PYTHON=/path/to/python3.11)"; exit 2; }
	@"$(PYTHON)" -m venv "$(VENV)" 2>/dev/null \
	  || { rm -rf "$(VENV)" && "$(PYTHON)" -m venv --without-pip "$(VENV)" && "$(PYTHON)" -m pip -q --python "$(BIN)/python" install pip; } \
	  || { echo "Cannot make a virtual environment: install pip or venv for $(PYTHON) (Debian: apt-get install python3-venv)"; exit 2; }
	@touch $@

# Install torch first and separately, so that pip uses a configured local or CPU wheel.
$(VENV)/.run-ready: $(VENV)/.venv-made pyproject.toml
	$(BIN)/pip install $(TORCH)
	$(BIN)/pip install --quiet numpy -e ".[engine]"
	@touch $@

$(VENV)/.dev-ready: $(VENV)/.run-ready pyproject.toml
	$(BIN)/pip install --quiet -e ".[dev,examples]"
	@touch $@

# Inductor compiles C++ that includes Python.h. Without it the demo continues in eager mode and says so; the tests need it.
HAS_COMPILER = { command -v "$${CXX:-g++}" || command -v clang++; } >/dev/null \
  && test -f "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

compiler: $(VENV)/.venv-made
	@$(HAS_COMPILER) || { $(SUDO) apt-get update && $(SUDO) apt-get install -y --no-install-recommends g++ python3-dev; } \
	  || { echo "The tests compile C++: install a C++ compiler and Python's headers"; exit 2; }

# -------------------------------------------------------------- the main job

demo: export OMP_NUM_THREADS := 2
demo: $(VENV)/.run-ready
	@$(HAS_COMPILER) || echo "No C++ compiler or no Python.h: compiled regions fall back to eager mode (Debian: apt-get install g++ python3-dev)"
	$(BIN)/magpy-lsp check --exit-zero examples/char_gpt/train.py
	$(BIN)/magpy-lsp run examples/char_gpt/train.py
	@# small tensors gain nothing from two threads
	OMP_NUM_THREADS=1 $(BIN)/magpy-lsp run examples/step_function/train.py

# -------------------------------------------------------------- tests and checks

test: $(VENV)/.dev-ready compiler
	$(BIN)/python -m pytest -n $(JOBS) -m "not e2e and not slow" $(PYTEST_ARGS)

# Tests that compile whole training runs with Inductor, or take long for another reason.
test-slow: $(VENV)/.dev-ready compiler
	$(BIN)/python -m pytest -n $(JOBS) -m "slow and not e2e and not exhaustive" $(PYTEST_ARGS)

# Large parts of the families and samples that the search draws from, always the same, and more cases of what the slow tests have:
# before a release, and after a change to what records or guards.
test-exhaustive: $(VENV)/.dev-ready compiler
	$(BIN)/python -m pytest -n $(JOBS) -m exhaustive $(PYTEST_ARGS)

# The engine's tests with other versions, in a separate environment (a CUDA build of torch takes 5 GB).
test-version: PAIR = $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$(subst =,,$(TORCH))
test-version:
	$(MAKE) test-engine VENV=.venv-$(PAIR)

test-engine: $(VENV)/.dev-ready compiler
	$(BIN)/python -m pytest -n $(JOBS) -m "not e2e and not slow" tests/unit tests/soundness tests/golden tests/programs $(PYTEST_ARGS)
	$(BIN)/python -m tests.soundness.stdlib_fuzz

test-stdlib: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soundness.stdlib_fuzz

# Exit status 1: something differs, and is kept in artifacts/soundness; 2: the search itself failed.
soundness: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soundness.search --minutes $(MINUTES) --jobs $(JOBS)

test-gpu: $(VENV)/.dev-ready
	$(BIN)/python -m pytest tests/gpu $(PYTEST_ARGS)

# An interpreter that is named is used as it is, on a machine where nothing can be installed.
GIVEN_PYTHON := $(if $(filter command environment,$(origin PYTHON)),$(PYTHON))
gpu-report: $(if $(GIVEN_PYTHON),,$(VENV)/.dev-ready)
	$(or $(GIVEN_PYTHON),$(BIN)/python) -m benchmarks.gpu.report --minutes $(GPU_MINUTES)

lint: $(VENV)/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/deptry .

types: $(VENV)/.dev-ready
	$(BIN)/mypy

format: $(VENV)/.dev-ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev-ready
	$(BIN)/python docs/tour.py
	$(MAKE) site

# A broken link, an anchor that is not there, or a page that is not in the navigation fails it. A wheel that is built later has the site.
site: $(VENV)/.dev-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict

# Precision and recall of the findings over tests/programs/findings; fails below 99 %.
findings: $(VENV)/.dev-ready
	$(BIN)/python -m tests.programs.findings_score

bench: $(VENV)/.dev-ready compiler
	@mkdir -p artifacts
	$(BIN)/python -m benchmarks --json artifacts/benchmarks.json

# -------------------------------------------------------------- the editor extension

vscode-extension/node_modules/.stamp: vscode-extension/package.json
	cd vscode-extension && if [ -f package-lock.json ]; then npm ci --no-audit --no-fund; else npm install --no-audit --no-fund; fi
	@touch $@

extension: vscode-extension/node_modules/.stamp
	cd vscode-extension && npm run lint && npm test && npm run build

# With the server, its packages and the engine: an interpreter needs torch, and nothing of MagPy.
vsix: $(VENV)/.dev-ready vscode-extension/node_modules/.stamp
	$(BIN)/python -m release.bundle
	cd vscode-extension && npm run package

# Wheel, source distribution and extension in dist; then what of them works where nothing else is installed.
dist: site vsix
	$(BIN)/python -m release.build

try-dist:
	$(BIN)/python -m release.try_out

e2e: $(VENV)/.dev-ready vsix
	cd vscode-extension && MAGPY_COMPILE=foreground MAGPY_PYTHON="$(abspath $(BIN)/python)" npm run e2e

# The pictures of README, documentation and walkthrough, made again; some show times, so only on a quiet machine.
pictures: $(VENV)/.dev-ready vsix
	cd vscode-extension && MAGPY_E2E_PICTURES=yes MAGPY_COMPILE=foreground MAGPY_PYTHON="$(abspath $(BIN)/python)" npm run e2e

clean:
	rm -rf build dist artifacts lsp_server/site *.egg-info vscode-extension/dist vscode-extension/bundled .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
