# `make demo` and `make test` do all the set-up themselves: Python, Java 17+ and make are enough.
SHELL := /bin/bash
PYTHON ?= python3
UV := $(or $(shell command -v uv 2>/dev/null),.tools/bin/uv)
RUN := $(UV) run --frozen --no-sync
export UV_PYTHON_DOWNLOADS := never
export UV_LINK_MODE := copy
# Where a machine forbids it, dbt's thousand modules are compiled again by every process: three seconds each.
unexport PYTHONDONTWRITEBYTECODE
export DBT_SEND_ANONYMOUS_USAGE_STATS := false

.PHONY: help demo test check lint types archive unit explore functional models intake users faults chaos bench format reference coverage clean java

help: ## What can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: .venv/ready java ## Build the example project into ./lake and show it
	$(RUN) python examples/shop/demo.py

# Two at a time: each waits, for half of its time, for a process to start or a thread to end.
test: .venv/ready java ## Everything: lint, types and all tests
	$(MAKE) --no-print-directory -j2 archive lint types
	$(MAKE) --no-print-directory -j2 models intake faults unit explore

check: .venv/ready lint types unit ## The fast loop, before each commit

lint: .venv/ready
	$(RUN) ruff check src tests examples benchmarks
	$(RUN) ruff format --check src tests examples benchmarks

types: .venv/ready
	$(RUN) mypy --strict src/penstock

unit: .venv/ready ## Tests that need no Spark
	$(RUN) python -m pytest tests/unit -m 'not slow'

coverage: .venv/ready $(if $(INTAKE),java) ## The share of the code that the unit tests run; with INTAKE=1 also the tests of files and changes
	$(RUN) python -m pytest tests/unit -m 'not slow' -q --cov --cov-report=$(if $(INTAKE),,term)
	$(if $(INTAKE),$(RUN) python -m pytest $(INTAKE_TESTS) -m 'not slow' -q --cov --cov-append --cov-report=term)

explore: .venv/ready ## The protocol under every schedule of two or three processes, with two preemptions and a kill
	$(RUN) python -m pytest tests/exploration

functional: models intake ## dbt and Spark in process, one JVM for each of the two

# Two of about the same length, the second with `faults`: a JVM is slow for its first minute, so there are few.
INTAKE_TESTS := tests/functional/changes tests/functional/files $(wildcard tests/functional/test_*file_models.py tests/functional/test_change*.py)
models: .venv/ready java ## dbt's own tests of an adapter, and ours of models
	$(RUN) python -m pytest tests/functional/adapter $(filter-out $(INTAKE_TESTS),$(wildcard tests/functional/test_*.py)) -m 'not slow'
intake: .venv/ready java ## Files and changes
	$(RUN) python -m pytest $(INTAKE_TESTS) -m 'not slow'

users: .venv/ready java ## Files, changes and windows, all with the SQL settings of a user's Spark
	PENSTOCK_SESSION=users $(RUN) python -m pytest $(INTAKE_TESTS) $(wildcard tests/functional/test_microbatch*.py) -m 'not slow'

# Delta's jars and Spark's class archive, which a test run of a quarter of an hour would not keep: each JVM would start cold.
archive: .venv/ready java
	$(RUN) python -c "import penstock, tempfile; folder = tempfile.TemporaryDirectory(); lake = penstock.connect(folder.name); lake.sql('create table t.t as select 1 as id'); lake.sql('select * from t.t').collect()"

faults: .venv/ready java ## Real processes, at once and killed; and lakes of earlier versions
	$(RUN) python -m pytest tests/faults tests/compatibility -m 'not slow'

chaos: .venv/ready java ## The long ones: 200 kills, 1,200 batches, 500 histories of changes, four preemptions
	PENSTOCK_KILLS=200 PENSTOCK_SEQUENCES=500 $(RUN) python -m pytest tests/faults tests/unit/files tests/functional/changes
	PENSTOCK_PREEMPTIONS=4 PENSTOCK_EXPLORATION_SECONDS=60 $(RUN) python -m pytest tests/exploration -rP

bench: .venv/ready java ## Measure against peers, as ratios; the result goes to docs/benchmarks.md
	$(RUN) python -m benchmarks

format: .venv/ready ## Put the code into shape
	$(RUN) ruff check --fix src tests examples benchmarks
	$(RUN) ruff format src tests examples benchmarks

reference: .venv/ready ## Write the docs' reference of all keys
	$(RUN) python -m penstock.config > docs/reference.md

clean: ## Remove what was made here
	rm -rf .venv .tools lake dist build .pytest_cache .mypy_cache .ruff_cache .coverage

java:
	@command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || { \
	  echo "Spark needs Java 17 or 21, and there is none."; \
	  echo "  Debian, Ubuntu:  apt-get install openjdk-17-jre-headless"; \
	  echo "  Fedora:          dnf install java-17-openjdk-headless"; \
	  echo "  macOS:           brew install openjdk@17"; exit 1; }

.venv/ready: pyproject.toml uv.lock $(filter .tools/bin/uv,$(UV))
	$(UV) sync --frozen --quiet
	@touch $@

.tools/bin/uv:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target .tools uv
