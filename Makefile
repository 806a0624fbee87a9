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

.PHONY: help demo test check lint types archive unit functional changes files models adapter faults chaos bench format clean java

help: ## What can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: .venv/ready java ## Build the example project into ./lake and show it
	$(RUN) python examples/shop/demo.py

# Two at a time: each waits, for half of its time, for a process to start or a thread to end.
test: .venv/ready java ## Everything: lint, types and all tests
	$(MAKE) --no-print-directory -j2 archive lint types
	$(MAKE) --no-print-directory -j2 adapter changes faults files models unit

check: .venv/ready lint types unit ## The fast loop, before each commit

lint: .venv/ready
	$(RUN) ruff check src tests examples benchmarks
	$(RUN) ruff format --check src tests examples benchmarks

types: .venv/ready
	$(RUN) mypy --strict src/penstock

unit: .venv/ready ## Tests that need no Spark
	$(RUN) python -m pytest tests/unit -m 'not slow'

functional: changes files models ## dbt and Spark in process, one JVM for each of the three

# Three of about the same length, so that both cores have something to do until the end.
FILE_TESTS := tests/functional/files $(wildcard tests/functional/test_*file*.py) tests/functional/test_microbatch.py
changes: .venv/ready java
	$(RUN) python -m pytest tests/functional/changes tests/functional/test_change_models.py -m 'not slow'
files: .venv/ready java
	$(RUN) python -m pytest $(FILE_TESTS) -m 'not slow'
models: .venv/ready java
	$(RUN) python -m pytest $(filter-out $(FILE_TESTS) %/test_change_models.py,$(wildcard tests/functional/test_*.py)) -m 'not slow'

# Delta's jars and Spark's class archive, which a test run of a quarter of an hour would not keep: each JVM would start cold.
archive: .venv/ready java
	$(RUN) python -c "import penstock, tempfile; folder = tempfile.TemporaryDirectory(); lake = penstock.connect(folder.name); lake.sql('create table t.t as select 1 as id'); lake.sql('select * from t.t').collect()"

adapter: .venv/ready java ## The same for dbt's own tests of an adapter
	$(RUN) python -m pytest tests/functional/adapter

faults: .venv/ready java ## Real processes, at once and killed
	$(RUN) python -m pytest tests/faults -m 'not slow'

chaos: .venv/ready java ## The long ones: 200 kills, 1,200 batches, 500 histories of changes
	PENSTOCK_KILLS=200 PENSTOCK_SEQUENCES=500 $(RUN) python -m pytest tests/faults tests/unit/files tests/functional/changes

bench: .venv/ready java ## Measure against peers, as ratios; the result goes to docs/benchmarks.md
	$(RUN) python -m benchmarks

format: .venv/ready ## Put the code into shape
	$(RUN) ruff check --fix src tests examples benchmarks
	$(RUN) ruff format src tests examples benchmarks

clean: ## Remove what was made here
	rm -rf .venv .tools lake dist build .pytest_cache .mypy_cache .ruff_cache

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
