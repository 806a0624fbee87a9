# `make demo` and `make test` do all the set-up themselves: Python, Java 17+ and make are enough.
SHELL := /bin/bash
PYTHON ?= python3
UV := $(or $(shell command -v uv 2>/dev/null),.tools/bin/uv)
RUN := $(UV) run --frozen --no-sync
# The tests of other versions have an environment each: the locked packages, and OVERRIDES over them.
VENV := .venv
OVERRIDES :=
export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_PYTHON_DOWNLOADS := never
export UV_LINK_MODE := copy
# Where a machine forbids it, dbt's thousand modules are compiled again by every process: three seconds each.
unexport PYTHONDONTWRITEBYTECODE
export DBT_SEND_ANONYMOUS_USAGE_STATS := false

.PHONY: help demo test check lint types actionlint archive unit explore functional models intake users faults wheel dist chaos bench
.PHONY: format reference coverage clean java slice slice-s3 test-s3 test-adls test-hdfs test-cluster cluster soak
.PHONY: test-dbt-1.12 test-spark-4.1 test-pythons

help: ## What can be made
	@grep -hE '^[a-z0-9.-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

demo: $(VENV)/ready java ## Build the example project into ./lake and show it
	$(RUN) python examples/shop/demo.py

# Two at a time: each waits, for half of its time, for a process to start or a thread to end.
test: $(VENV)/ready java ## Everything: lint, types and all tests
	$(MAKE) --no-print-directory -j2 archive lint types actionlint
	$(MAKE) --no-print-directory -j2 models intake faults slice-s3 cluster unit explore wheel

check: $(VENV)/ready lint types actionlint unit ## The fast loop, before each commit

AZURITE := .tools/azurite/node_modules/.bin/azurite-blob
CODE := src tests examples benchmarks tools
lint: $(VENV)/ready
	$(RUN) ruff check $(CODE)
	$(RUN) ruff format --check $(CODE)
	$(RUN) lint-imports --no-cache
	$(RUN) python tools/import_graph.py --check

types: $(VENV)/ready
	$(RUN) mypy --strict src/penstock src/dbt/adapters/penstock

ACTIONLINT := $(or $(shell command -v actionlint 2>/dev/null),.tools/go/actionlint)
actionlint: ## Check the workflows of CI; needs actionlint, or Go to build it
	@if ! test -x $(ACTIONLINT) && command -v go >/dev/null; then \
	  GOBIN=$(CURDIR)/.tools/go go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 || true; fi
	@if test -x $(ACTIONLINT); then echo $(ACTIONLINT); $(ACTIONLINT) .github/workflows/*.yml; else \
	  echo "actionlint: skipped. Install it (macOS: brew install actionlint), or Go 1.25 or later, which builds it."; fi

unit: $(VENV)/ready ## Tests that need no Spark
	$(RUN) python -m pytest tests/unit -m 'not slow'

coverage: $(VENV)/ready $(if $(INTAKE),java) ## The share of the code that the unit tests run; with INTAKE=1 also the tests of files and changes
	$(RUN) python -m pytest tests/unit -m 'not slow' -q --cov --cov-report=$(if $(INTAKE),,term)
	$(if $(INTAKE),$(RUN) python -m pytest $(INTAKE_TESTS) -m 'not slow' -q --cov --cov-append --cov-report=term)

explore: $(VENV)/ready ## The protocol under every schedule of two or three processes, with two preemptions and a kill
	$(RUN) python -m pytest tests/exploration

functional: models intake ## dbt and Spark in process, one JVM for each of the two

# Two of about the same length, the second with `faults`: a JVM is slow for its first minute, so there are few.
INTAKE_TESTS := tests/functional/changes tests/functional/files $(wildcard tests/functional/test_*file_models.py tests/functional/test_change*.py)
models: $(VENV)/ready java ## dbt's own tests of an adapter, and ours of models
	$(RUN) python -m pytest tests/functional/adapter $(filter-out $(INTAKE_TESTS),$(wildcard tests/functional/test_*.py)) -m 'not slow'
intake: $(VENV)/ready java ## Files and changes
	$(RUN) python -m pytest $(INTAKE_TESTS) -m 'not slow'

users: $(VENV)/ready java ## Files, changes and windows, all with the SQL settings of a user's Spark
	PENSTOCK_SESSION=users $(RUN) python -m pytest $(INTAKE_TESTS) $(wildcard tests/functional/test_microbatch*.py) -m 'not slow'

# Delta's jars and Spark's class archive, which a test run of a quarter of an hour would not keep: each JVM would start cold.
archive: $(VENV)/ready java
	$(RUN) python -c "import penstock, tempfile; folder = tempfile.TemporaryDirectory(); lake = penstock.connect(folder.name); lake.sql('create table t.t as select 1 as id'); lake.sql('select * from t.t').collect()"

faults: $(VENV)/ready java ## Real processes, at once and killed; and lakes of earlier versions
	$(RUN) python -m pytest tests/faults tests/compatibility -m 'not slow'

wheel: $(VENV)/ready java ## What users install: the wheel, in an empty environment and another folder
	$(RUN) python -m pytest tests/packaging

dist: $(filter .tools/bin/uv,$(UV)) ## Build the wheel and the source distribution
	$(UV) build --clear

test-adls: $(VENV)/ready $(AZURITE) ## A lake on Azure's blob store, by its emulator; needs npm
	$(RUN) python -m pytest tests/stores/test_adls.py

test-hdfs: $(VENV)/ready java ## A lake on HDFS, by Hadoop's mini-cluster, whose jar is fetched (56 MB)
	$(RUN) python -m pytest tests/stores/test_hdfs.py

# Each of these goes by the place that --on names.
S3_SLICE := tests/functional/test_file_models.py tests/functional/test_change_models.py tests/functional/test_signature.py \
  tests/functional/adapter/test_simple_snapshot.py::TestSnapshot tests/functional/test_microbatch_files.py
slice-s3: $(VENV)/ready java
	$(RUN) python -m pytest --on s3 $(S3_SLICE) -m 'not slow'

S3_SERVER := .tools/go/versitygw
S3_TESTS := tests/functional/adapter tests/functional/changes $(filter-out %test_stores_without_jars.py,$(wildcard tests/functional/files/test_*.py)) \
  $(wildcard tests/functional/test_*model*.py tests/functional/test_microbatch*.py tests/functional/test_s3*.py) \
  tests/functional/test_signature.py tests/faults/test_s3_races.py
test-s3: $(VENV)/ready java $(S3_SERVER) ## The functional tests with the lakes on S3 (versitygw), and races of drivers there
	PENSTOCK_S3_SERVER=$(CURDIR)/$(S3_SERVER) $(RUN) python -m pytest --on s3 $(S3_TESTS) -m 'not slow'

# A server whose conditional put is real. Its build takes minutes.
$(S3_SERVER):
	@command -v go >/dev/null || { echo "The S3 server for tests is built by Go 1.25 or later, and there is none."; exit 1; }
	GOBIN=$(CURDIR)/.tools/go go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

chaos: $(VENV)/ready java ## The long ones: 200 kills, 1,200 batches, 500 histories of changes, four preemptions, races on S3
	PENSTOCK_KILLS=200 PENSTOCK_SEQUENCES=500 PENSTOCK_ROUNDS=20 PENSTOCK_COMMITS=60 $(RUN) python -m pytest tests/faults tests/unit/files tests/functional/changes
	PENSTOCK_FAULTS=10000 $(RUN) python -m pytest tests/functional/test_s3_faults.py
	PENSTOCK_PREEMPTIONS=4 PENSTOCK_EXPLORATION_SECONDS=60 $(RUN) python -m pytest tests/exploration -rP

# What a cluster could do in another way: every kind of model, and Python on the executors.
CLUSTER_TESTS := tests/functional/test_cluster.py tests/functional/changes tests/functional/adapter/test_basic.py \
	tests/functional/adapter/test_simple_snapshot.py tests/functional/adapter/test_python_model.py \
	$(addprefix tests/functional/test_,file_models.py change_models.py microbatch.py python_functions.py seeds.py strategies.py clone.py)
test-cluster: $(VENV)/ready java ## The part of the tests that fits, on a standalone cluster of this machine, and parts of it killed
	$(RUN) python -m pytest --on cluster $(CLUSTER_TESTS) -m 'not slow'
	$(RUN) python -m pytest --on cluster tests/faults/test_cluster.py

cluster: $(VENV)/ready java
	$(RUN) python -m pytest --on cluster tests/functional/test_cluster.py -m 'not slow'

# A bit of everything that Python, Spark or dbt could do in another way in another version.
SLICE := tests/functional/adapter/test_basic.py tests/functional/test_file_models.py tests/functional/test_change_models.py
slice: $(VENV)/ready java
	$(RUN) python -m pytest $(SLICE) -m 'not slow'

# dbt-core 1.12 without its parser package, which installs by downloading from outside the package index.
DBT_1_12 := dbt-core==1.12.6 metricflow==0.213.0 python-dotenv==1.2.4 rapidfuzz==3.14.6 tabulate==0.10.0
test-dbt-1.12: ## A part of the functional tests, with dbt-core 1.12
	$(MAKE) --no-print-directory VENV=.venv-dbt-1.12 OVERRIDES="$(DBT_1_12)" slice

test-spark-4.1: ## A part of the functional tests, with Spark 4.1
	$(MAKE) --no-print-directory VENV=.venv-spark-4.1 OVERRIDES=pyspark==4.1.4 slice

# pyenv's interpreters need not be on the path, and its commands on the path need not work.
interpreter = $(or $(shell python$(1) -c 'import sys; print(sys.executable)' 2>/dev/null),\
	$(lastword $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/$(1).*/bin/python)))
PYTHONS := 3.10 3.12 3.13
test-pythons: $(PYTHONS:%=test-python-%) ## Unit tests and a part of the functional tests, on each Python but that of .venv
.PHONY: $(PYTHONS:%=test-python-%)
$(PYTHONS:%=test-python-%): test-python-%:
	@test -n "$(call interpreter,$*)" || { echo "There is no Python $* here. With pyenv: pyenv install $*"; exit 1; }
	UV_PYTHON=$(call interpreter,$*) $(MAKE) --no-print-directory VENV=.venv-$* unit slice

bench: $(VENV)/ready java ## Measure against peers, as ratios; the result goes to docs/benchmarks.md
	$(if $(wildcard $(S3_SERVER)),PENSTOCK_S3_SERVER=$(CURDIR)/$(S3_SERVER)) $(RUN) python -m benchmarks

MINUTES := 60
ON := local
soak: $(VENV)/ready java ## Files arrive for MINUTES while runs overlap and get killed, ON local, s3, cluster or cluster-s3
	$(RUN) python -m benchmarks.soak --minutes $(MINUTES) --on $(ON)

format: $(VENV)/ready ## Put the code into shape
	$(RUN) ruff check --fix $(CODE)
	$(RUN) ruff format $(CODE)

reference: $(VENV)/ready ## Write the docs' reference of all keys
	$(RUN) python -m penstock.config > docs/reference.md

graph: $(VENV)/ready ## Draw the imports between the packages into docs/design.md
	$(RUN) python tools/import_graph.py

clean: ## Remove what was made here
	rm -rf .venv .venv-* .tools lake dist build .pytest_cache .mypy_cache .ruff_cache .coverage

java:
	@command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || { \
	  echo "Spark needs Java 17 or 21, and there is none."; \
	  echo "  Debian, Ubuntu:  apt-get install openjdk-17-jre-headless"; \
	  echo "  Fedora:          dnf install java-17-openjdk-headless"; \
	  echo "  macOS:           brew install openjdk@17"; exit 1; }

# In another directory than this one, uv does not hold OVERRIDES to the constraints of the lock.
$(VENV)/ready: pyproject.toml uv.lock $(if $(OVERRIDES),Makefile) $(filter .tools/bin/uv,$(UV))
	$(UV) sync --frozen --quiet
	$(if $(OVERRIDES),$(UV) pip install --directory / --quiet --no-deps --python $(abspath $(VENV))/bin/python $(OVERRIDES))
	@touch $@

$(AZURITE):
	npm install --silent --no-audit --no-fund --prefix .tools/azurite azurite@3.35.0

.tools/bin/uv:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target .tools uv
