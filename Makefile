# make demo: crawl a simulated web.  make test: run the tests.  Both install what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# With what a crawl and its queries need; with what tests and tools need, too.
INSTALLED := $(VENV)/installed
READY := $(VENV)/ready
ROOMS := io pipelines policy transforms web
ARGS ?=
# Two more workers than cores, because tests often wait for servers and processes.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 2)")

# uv is many times faster than pip. If it cannot reach the packages, pip tries. pip compiles bytecode
# by itself. Without it a command takes three times as long, wherever bytecode may not be written.
comma := ,
pip = $(BIN)/pip install --quiet --disable-pip-version-check
install = $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable '$(1)' || \
	  $(pip) --editable '$(1)'

# Commands and test workers are many short processes. Where this is set, each of them would compile all
# modules again: a fifth of the time of a command, and half of that to collect the tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo fuzz test test-flink test-prism test-dataflow test-airflow test-bigtable test-oldest
.PHONY: test-servers test-pythons test-loaders test-flink-newest
.PHONY: test-long test-clusters test-here test-runners bench
.PHONY: lint types wheel docs pictures pins docs-site browser clean conformance

help:
	@echo "make demo       crawl a simulated web and show what was found"
	@echo "make test       run the tests; ARGS='-k urls' chooses some"
	@echo "make test-flink, test-prism, test-dataflow, test-airflow"
	@echo "                run the short tests on these, if Go is there (Flink: Java and Maven, too)"
	@echo "make test-bigtable"
	@echo "                run all tests of tables on the Bigtable emulator; make test runs some of them"
	@echo "make test-servers"
	@echo "                run the tests on real OpenSearch, Elasticsearch and Solr, with Java and Maven"
	@echo "make test-oldest"
	@echo "                run the short tests with the oldest version of each library that pyproject.toml allows"
	@echo "make test-loaders"
	@echo "                run the loaders of the docs with LangChain and LlamaIndex"
	@echo "make test-pythons"
	@echo "                run the tests of transforms and crawls with Python 3.12, 3.13 and 3.14, where they are"
	@echo "make test-long  run all of them, the long ones too (three hours)"
	@echo "make fuzz       feed each reader odd inputs for 20 s; ARGS='--seconds 600 urls' chooses"
	@echo "make bench      measure, and put the figures into docs/performance.md"
	@echo "make conformance"
	@echo "                run other crawlers on a hostile web, and put the counts into docs/comparison.md"
	@echo "make lint       check style and format"
	@echo "make types      check types"
	@echo "make wheel      build wheel and source distribution into dist/"
	@echo "make docs       generate docs/reference, templates and methods of Table from declarations"
	@echo "make pictures   draw the pictures of the README again"
	@echo "make pins       pin what the Dataflow image installs, with hashes"
	@echo "make docs-site  install Debian's documentation and nginx, a real site to crawl"
	@echo "make browser    install Chromium, in which the search page is tried"
	@echo "make clean      remove all generated files, and the environment"

demo: $(INSTALLED)
	@$(BIN)/python -m nutbeam.pipelines.command_line.demo

# With Go, a server of Cloud Storage is built and the URL cases of web-platform-tests are fetched; with
# Java and Maven, jwarc and Nutch. Without them, the tests that need them are skipped, and say so.
# There are more processes than cores: a second thread of polars in each costs a sixth of a command's time.
# The long forms, those of runners, and the tests from the wheel use all threads.
# A test that never ends is named after ten minutes.
test: $(READY)
	@./.ci/tools fake-gcs-server || echo "no fake-gcs-server: tests of gs:// are skipped"
	@./.ci/tools urltestdata.json || echo "no urltestdata.json: the cases of web-platform-tests are skipped"
	@./.ci/tools jwarc.jar || echo "no jwarc.jar: archives are not checked by jwarc"
	@./.ci/tools nutch || echo "no nutch: its classes do not read what is exported for it"
	@POLARS_MAX_THREADS=1 $(BIN)/pytest -q -n $(WORKERS) --dist worksteal --timeout 600 --durations 30 --durations-min 8 $(ARGS)

# Tests that need programs which are built here. A program that cannot be built is named, and its tests
# are skipped. Tests of one file share a cluster. On a busy machine a worker may need longer to start than the
# minute for which Prism waits, which cannot be set: a test that fails for this runs once more.
again = --reruns 1 --only-rerun "get control connection|for which Prism waits"
with_tools = @./.ci/tools $(1) || { code=$$?; [ $$code = 3 ]; exit $$?; }; \
	  $(BIN)/pytest -q -n 2 --dist loadfile $(again) $(2) $(ARGS)

# Chooses tests with marks, in the files that have some: to collect all tests takes a minute.
marked = -m "($(subst |, or ,$(1))) $(2)" $(shell grep -rlE --include='test_*.py' 'mark\.($(1))\b' tests)

# The tests of transforms and crawls on other runners; tests/conftest.py chooses them.
on_runners = @for runner in $(2); do \
	  echo "on $$runner"; $(1) NUTBEAM_TEST_RUNNER=$$runner $(BIN)/pytest -q -n auto $(again) $(ARGS) || exit 1; \
	done

test-flink: $(READY)
	$(call with_tools,flink-job-server.jar beam-boot flink-kubernetes-operator-api.jar,\
	  $(call marked,flink,and not long))

# A crawl on the newest Flink that could be had.
test-flink-newest: $(READY)
	@./.ci/tools flink-job-server-1.20.jar beam-boot || [ $$? = 3 ]
	@NUTBEAM_TEST_FLINK=1.20 $(BIN)/pytest -q -m "flink and not long" tests/runners/test_flink_crawl.py $(ARGS)

# Airflow gets a separate environment: it and Beam need different versions of the same libraries.
test-airflow: $(READY) build/airflow/ready
	@$(BIN)/pytest -q -m airflow tests/templates/test_templates_airflow.py $(ARGS)

build/airflow/ready: templates/airflow/constraints.txt
	@"$(PYTHON)" -m venv build/airflow
	@build/airflow/bin/pip install --quiet --disable-pip-version-check apache-airflow -c $<
	@touch $@

# LangChain and LlamaIndex bring packages of which no test needs more than this one.
test-loaders: $(READY) build/loaders/ready
	@$(BIN)/pytest -q -m long tests/docs/test_docs_loaders.py $(ARGS)

build/loaders/ready: pyproject.toml $(READY)
	@"$(PYTHON)" -m venv build/loaders
	@$(BIN)/uv pip install --quiet --python build/loaders/bin/python --editable . \
	  langchain-core llama-index-core
	@touch $@

# The emulator is part of the Google Cloud SDK. Without it the tests are skipped, and say so.
# ARGS="-m 'bigtable and long and not flink'" runs the long ones; test-here runs most of these.
test-bigtable: $(READY)
	@NUTBEAM_TEST_BACKEND=bigtable $(BIN)/pytest -q -n auto -m "bigtable and not (flink or long)" $(ARGS)

# One server at a time: each takes half a GB. They are built from packages of Maven Central.
test-servers: $(READY)
	@$(BIN)/pytest -q $(call marked,servers,and not long) $(ARGS)

test-prism: $(READY)
	$(call with_tools,prism beam-boot,$(call marked,prism,and not long))
	$(call on_runners,NUTBEAM_TEST_SHORT=1,prism)

test-dataflow: $(VENV)/gcp
	$(call with_tools,fake-gcs-server prism beam-boot,\
	  $(call marked,dataflow|yaml,and not long))

# The oldest versions have an environment of their own. Beam is named, for other libraries would lift it.
test-oldest: $(READY) build/oldest/ready
	@$(BIN)/pytest -q -m "long or not long" tests/pipelines/running/test_pipelines_beam_versions.py $(ARGS)
	@echo "on Beam $(BEAM) and the oldest of all libraries"
	@POLARS_MAX_THREADS=1 build/oldest/bin/pytest -q -n $(WORKERS) --dist worksteal --timeout 1200 $(ARGS)

BEAM = $(shell sed -n 's/^ *"apache-beam>=\([0-9.]*\),.*/\1/p' pyproject.toml)

build/oldest/ready: pyproject.toml $(READY)
	@"$(PYTHON)" -m venv build/oldest
	@$(BIN)/uv pip install --quiet --resolution lowest-direct --python build/oldest/bin/python \
	  --editable '.[dev]' "apache-beam==$(BEAM).*"
	@touch $@

# The tests of transforms and crawls with later versions of Python, where the system or pyenv has them.
test-pythons: $(READY)
	@for version in 3.12 3.13 3.14; do \
	  for found in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python ""; do \
	    "$$found" -c "" 2>/dev/null && break; \
	  done; \
	  [ "$$found" ] || { echo "no Python $$version: its tests are skipped"; continue; }; \
	  $(BIN)/uv venv --quiet --allow-existing --python "$$found" build/python-$$version || exit 1; \
	  $(BIN)/uv pip install --quiet --python build/python-$$version/bin/python --editable '.[dev]' || exit 1; \
	  echo "on Python $$version"; \
	  NUTBEAM_TEST_RUNNER=bundles build/python-$$version/bin/pytest -q -n auto $(ARGS) || exit 1; \
	done

ON_CLUSTERS := flink|prism|dataflow|yaml|servers

# Each part takes up to two and a half hours. `make -k test-long` goes on after a part that failed.
test-long: test-airflow test-clusters test-here test-runners test-oldest test-pythons test-loaders \
  test-flink-newest

# The long tests that need a cluster, Prism or a server.
test-clusters: $(VENV)/gcp
	$(call with_tools,flink-job-server.jar beam-boot flink-kubernetes-operator-api.jar prism fake-gcs-server webgraph,\
	  --durations 30 $(call marked,$(ON_CLUSTERS)))

# The long tests that need nothing of the kind. What some of them read is fetched, or they are skipped.
test-here: $(VENV)/gcp build/oldest/ready
	@for tool in webgraph fake-gcs-server jwarc.jar nutch hdfs promtool; do ./.ci/tools $$tool || [ $$? = 3 ] || exit 1; done
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal --timeout 1800 --durations 30 \
	  -m "long and not (airflow or $(subst |, or ,$(ON_CLUSTERS)))" $(ARGS)

test-runners: $(READY)
	@./.ci/tools prism beam-boot || [ $$? = 3 ]
	$(call on_runners,,prism bundles processes)

# Inputs that fail are in build/fuzz/found, inputs that reach new code in build/fuzz/corpus.
fuzz: $(VENV)/fuzz
	@$(BIN)/python tests/fuzz/run.py $(ARGS)

# atheris observes which code runs. Without it the seeds are changed at random.
$(VENV)/fuzz: $(READY)
	@$(call install,.[dev$(comma)fuzz]) || echo "atheris cannot be installed here"
	@touch $@

# Writes the figures of docs/performance.md, each beside its baseline, and shows which ratios are worse than
# in the last run. ARGS='update' chooses; ARGS=--full takes full sizes.
bench: build/bench/ready
	@build/bench/bin/python benchmarks/record.py $(ARGS)

# Installs the crawlers below build/rivals, each in an environment of its own. Half an hour; ARGS chooses.
conformance: $(READY)
	@$(BIN)/python benchmarks/conformance.py --write $(ARGS)

# Without the test dependencies, whose imports would distort the figures.
build/bench/ready: pyproject.toml
	@"$(PYTHON)" -m venv build/bench
	@build/bench/bin/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

# Google's client libraries, for Dataflow.
$(VENV)/gcp: $(READY)
	@$(call install,.[dev$(comma)gcp$(comma)yaml])
	@touch $@

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# mypy cannot follow the mapping in setup.py: give it the tree as installed.
types: $(READY)
	@mkdir -p build/types/nutbeam
	@ln -sfn $(addprefix "$(CURDIR)"/,$(wildcard package/*.*) $(ROOMS)) build/types/nutbeam/
	@$(BIN)/mypy

# Removes build/lib, which keeps deleted modules.
wheel: $(READY)
	@rm -rf build/lib build/bdist.* dist
	@$(BIN)/pyproject-build --outdir dist . > build.log 2>&1 || { cat build.log; rm build.log; exit 1; }
	@rm build.log
	@ls dist/*

docs: $(READY)
	@$(BIN)/python -m nutbeam.pipelines.reference_pages.reference .
	@PYTHONPATH=tests/support $(BIN)/python -m graphs docs/architecture.md

pictures: $(READY)
	@$(BIN)/python docs/images/pictures.py docs/images

# Pins the packages of the templates' image; run it when dependencies change.
pins: $(VENV)/gcp
	@PATH="$(CURDIR)/$(BIN):$$PATH" templates/dataflow/pin

docs-site:
	@./.ci/docs-site

browser:
	@./.ci/browser

clean:
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): $(INSTALLED)
	@echo "installing what tests and tools need ..."
	@$(call install,.[dev])
	@touch $@

# Created again when the declarations change: a new dependency, a new room.
$(INSTALLED): pyproject.toml setup.py
	@command -v "$(PYTHON)" > /dev/null || \
	  { echo "$(PYTHON) was not found: install Python 3.11 or newer, or name it: make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, $(PYTHON) is older: name another, as make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || \
	  { echo "Python's venv module is missing: install it, e.g. apt install python3-venv" >&2; exit 1; }
	@echo "installing into $(VENV) ..."
	@"$(PYTHON)" -m venv $(VENV)
	@$(pip) uv
	@$(call install,.[sql$(comma)report])
	@$(BIN)/python -m compileall -q $(ROOMS)
	@touch $@
