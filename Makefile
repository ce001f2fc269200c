# make demo       compile the example model, run it on an (emulated) device, print the figures
# make test       the whole default test suite
# make test-long  the same with the long cases
# make check      format, lint, types, layering: what must be green before a commit
# make mutants  small wrong changes to the passes and planners: do the tests notice?
# make misra      the device runtime and generated models against MISRA C:2012 (needs cppcheck)
# make wheel      the wheel, with the C runtime compiled in for hosts and devices of Linux, into dist/
# make docs       the documentation as a site, build/site, and manual pages, build/man
# make release    that wheel, checked without compiler, network and root, an sdist, sums, changes
#
# Everything runs in .venv, which the first of these commands makes.
# PYTHON=python3.12 picks another interpreter; JOBS=1 runs the tests one at a time.

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
VENV ?= .venv
BIN := $(VENV)/bin
TORCH = $(shell sed -n 's/.*"\(torch==[^"]*\)".*/\1/p' pyproject.toml)

.PHONY: demo test test-long check format misra mutants docs wheel release clean

demo: $(VENV)/.for-demo
	$(BIN)/slipway demo $(DEMO)

test: $(VENV)/.for-tests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-long: $(VENV)/.for-tests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "long or not long"

check: $(VENV)/.for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layering.py

format: $(VENV)/.for-tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

misra: $(VENV)/.for-tests
	$(BIN)/python tools/misra.py

mutants: $(VENV)/.for-tests
	$(BIN)/python tools/mutants.py $(MUTANTS)

docs: $(VENV)/.for-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/python tools/manual_pages.py build/man
	@echo "build/site/index.html, build/man/slipway.1"

wheel: $(VENV)/.for-tests
	rm -rf build
	$(BIN)/python -m slipway.toolchain.prebuild --servers  # for hosts without a compiler
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

release: $(VENV)/.for-tests
	$(BIN)/python tools/release.py $(RELEASE)

clean:
	rm -rf $(VENV) build dist src/*.egg-info

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Slipway needs Python 3.11 or newer; '$(PYTHON)' is not. Install it (Debian 12:"; \
	  echo "  sudo apt-get install python3 python3-venv) or name another one: make PYTHON=python3.12"; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo "'$(PYTHON)' cannot make virtual environments: on Debian and Ubuntu run"; \
	  echo "  sudo apt-get install python3-venv"; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --upgrade pip  # an old one serves, too
	@touch $@

$(VENV)/.for-demo: $(VENV)/.made pyproject.toml
	@echo "Installing Slipway and its compiler into $(VENV) (about 300 MB, once)"
	$(BIN)/python -m pip install --quiet -e ".[compile,onnx,tflite,cli]"
	@touch $@

$(VENV)/.for-docs: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[cli,docs]"
	@touch $@

$(VENV)/.for-tests: $(VENV)/.made pyproject.toml
	@echo "Installing Slipway with what its tests need into $(VENV) (about 3 GB, once)"
	-@$(BIN)/python -m pip install --quiet --no-deps --retries 0 --timeout 20 \
	  --index-url https://download.pytorch.org/whl/cpu $(TORCH) 2>/dev/null || \
	  echo "no build of torch for CPUs alone was found: that for GPUs takes 4 GB more"
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@ $(VENV)/.for-demo
