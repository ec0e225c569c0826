# make demo: crawl a simulated web.  make test: run the tests.  Both install what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
ROOMS := io pipelines policy transforms web
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint types wheel docs docs-site clean

help:
	@echo "make demo       crawl a simulated web and show what was found"
	@echo "make test       run the tests; ARGS='-k urls' chooses some"
	@echo "make lint       check style and format"
	@echo "make types      check types"
	@echo "make wheel      build wheel and source distribution into dist/"
	@echo "make docs       generate docs/reference and templates from the options"
	@echo "make docs-site  install Debian's documentation and nginx, a real site to crawl"
	@echo "make clean      remove all that was made, the environment too"

demo: $(READY)
	@$(BIN)/python -m nutbeam.pipelines.demo

test: $(READY)
	@$(BIN)/pytest -q -n auto $(ARGS)

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# mypy cannot follow the mapping in setup.py: give it the tree as installed.
types: $(READY)
	@mkdir -p build/types/nutbeam
	@for room in $(ROOMS); do ln -sfn "$(CURDIR)/$$room" build/types/nutbeam/$$room; done
	@$(BIN)/mypy

# Without build/lib: it keeps modules that are gone.
wheel: $(READY)
	@rm -rf build/lib build/bdist.* dist
	@$(BIN)/pyproject-build --outdir dist . > build.log 2>&1 || { cat build.log; rm build.log; exit 1; }
	@rm build.log
	@ls dist/*

docs: $(READY)
	@mkdir -p docs/reference
	@$(BIN)/python -m nutbeam.pipelines.reference options > build.tmp
	@mv build.tmp docs/reference/options.md
	@for command in generate; do \
	  $(BIN)/python -m nutbeam.pipelines.reference template $$command > build.tmp && \
	  mv build.tmp templates/$$command.json || exit 1; \
	done

docs-site:
	@./.ci/docs-site

clean:
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Made anew when what is declared there changes: a new dependency, a new room.
$(READY): pyproject.toml setup.py
	@command -v "$(PYTHON)" > /dev/null || \
	  { echo "$(PYTHON) was not found: install Python 3.11 or newer, or name it: make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, $(PYTHON) is older: name another, as make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || \
	  { echo "Python's venv module is missing: install it, e.g. apt install python3-venv" >&2; exit 1; }
	@echo "installing into $(VENV) ..."
	@"$(PYTHON)" -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
