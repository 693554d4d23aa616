# Every target sets up what it needs: a virtual environment with the locked versions, and Java.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/sh
# Where it is set, each of the hundreds of Python processes would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Python to make the environment with; empty: the newest one on PATH.
PYTHON ?=
# More arguments for pytest, for example: make test ARGS="-k watermark"
ARGS ?=
# Where Spark shall run; scripts/find_java.sh finds it, or installs it, or says how.
FIND_JAVA = JAVA_HOME="$$(scripts/find_java.sh)" && export JAVA_HOME
FETCH_KAFKA = scripts/find_kafka.sh >/dev/null || echo "The tests of Kafka are skipped" >&2
PYTEST = $(BIN)/python -m pytest
# How many processes run tests side by side, each with a Spark of its own; JOBS=0 is one, for ARGS="--pdb".
JOBS ?= 2
# A file is run by one of them, and files begin in the order of tests/conftest.py.
SIDE_BY_SIDE = -n $(JOBS) --dist loadfile --no-loadscope-reorder

.PHONY: help setup java kafka demo demo-kafka demo-sites test long thorough matrix matrix-ci unit spark faults bench bench-sites nexmark theta soak papers choices choices-tables choices-theta jar browser lint format types docs wheel screenshots site check lock clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) java ## make .venv with the locked versions, and find or install Java 17+

$(READY): requirements.lock pyproject.toml
	@python="$(PYTHON)" && test -x $(BIN)/python || \
		{ python="$${python:-$$(scripts/find_python.sh)}" && "$$python" -m venv $(VENV); }
	@echo "Installing the locked packages into $(VENV) (the first time takes a few minutes)"
	@$(PIP) "$$(grep '^uv==' requirements.lock)"
	@$(BIN)/python -m uv --quiet pip install --python $(BIN)/python --requirement requirements.lock || \
		$(PIP) --requirement requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

java: ## find Java 17+, or install it, or say how
	@$(FIND_JAVA) && echo "Java: $$JAVA_HOME"

demo: $(READY) ## join three streams of real flights, with EXPLAIN and checked counts
	@$(FIND_JAVA) && $(BIN)/wjoin demo

kafka: ## find the jars of a Kafka broker and of Spark's connector, or fetch them by Maven, or say how
	@scripts/find_kafka.sh

demo-kafka: $(READY) ## start a Kafka broker, join topics of flights, and check the results
	@$(FIND_JAVA) && jars="$$(scripts/find_kafka.sh)" && $(BIN)/python examples/kafka/demo.py "$$jars"

demo-sites: $(READY) ## join packets of two sites, and draw the bytes that partial tuples save
	@$(FIND_JAVA) && $(BIN)/python examples/sites/demo.py --picture out/sites.svg

test: $(READY) ## a test of everything: those without Spark first
	@$(FIND_JAVA) && $(PYTEST) $(SIDE_BY_SIDE) -m "quick" $(ARGS)

long: $(READY) browser ## a case of each: crashes, random statements on streams, other kinds of sessions, Kafka
	@$(FETCH_KAFKA)
	@$(FIND_JAVA) && $(PYTEST) $(SIDE_BY_SIDE) -m "long and not quick or property" \
		--hypothesis-profile many --kills 1 $(ARGS)

thorough: $(READY) browser ## all that `make test` leaves out, before a release: more than an hour
	@$(FETCH_KAFKA)
	@$(FIND_JAVA) && $(PYTEST) $(SIDE_BY_SIDE) -m "(long or thorough and not faults) and not quick or property" \
		--thorough --hypothesis-profile thorough $(ARGS)

matrix: $(READY) ## the core of the tests on every Spark and Python: ARGS="--sparks 4.0.0 --pythons 3.12"
	@$(FIND_JAVA) && $(BIN)/python scripts/matrix.py $(ARGS)

matrix-ci: $(READY) ## the same on the oldest Spark and Python only
	@$(FIND_JAVA) && $(BIN)/python scripts/matrix.py --ends -q $(ARGS)

unit: $(READY) ## the fast tests, without Spark
	@$(PYTEST) $(SIDE_BY_SIDE) -m "quick and not spark" $(ARGS)

spark: $(READY) ## the tests on Spark
	@$(FIND_JAVA) && $(PYTEST) $(SIDE_BY_SIDE) -m spark $(ARGS)

faults: $(READY) ## kill running queries 25 times, and let 12,000,000 rows wait: results and peak memory
	@$(FIND_JAVA) && $(PYTEST) -m faults --thorough --kills 25 --backlog 12000000 --limit-gb 4 -rP $(ARGS)

bench: $(READY) ## measure wjoin against hand-written chains of Spark joins, and against reading alone
	@$(FIND_JAVA) && $(BIN)/python benchmarks/bench.py $(ARGS)

bench-sites: $(READY) ## measure streams at sites: bytes on the wire, and rates against local files
	@$(FIND_JAVA) && $(BIN)/python benchmarks/sites.py $(ARGS)

nexmark: $(READY) ## NEXMark's window joins beside Spark's, and Flink's with ARGS="--flink PYTHON"
	@$(FIND_JAVA) && $(BIN)/python -m benchmarks.nexmark.nexmark $(ARGS)

theta: $(READY) ## measure joins without a key against buckets of time on Spark, DuckDB and Polars
	@$(FIND_JAVA) && $(BIN)/python benchmarks/theta.py $(ARGS)

soak: $(READY) ## run a query for an hour: do memory, state, files and micro-batches stay level?
	@$(FIND_JAVA) && $(BIN)/python benchmarks/soak.py $(ARGS)

papers: $(READY) ## reproduce the figures of the papers
	@$(BIN)/python benchmarks/papers/wjoin2002.py $(ARGS)
	@$(BIN)/python benchmarks/papers/psp2009.py $(ARGS)
	@$(BIN)/python benchmarks/papers/semijoin.py $(ARGS)
	@$(BIN)/python benchmarks/papers/s2j.py $(ARGS)
	@$(BIN)/python benchmarks/papers/dft2007.py $(ARGS)

choices: $(READY) ## run every candidate plan of many workloads, and compare the chosen ones
	@$(BIN)/python benchmarks/choices.py $(ARGS)

choices-theta: $(READY) ## the same for joins without a key: route, workers, slices
	@$(BIN)/python benchmarks/choices_theta.py $(ARGS)

choices-tables: $(READY) ## the same over tables: wjoin's stages against Spark's own joins
	@$(FIND_JAVA) && $(BIN)/python benchmarks/choices_tables.py $(ARGS)

jar: $(READY) ## compile java/ into wjoin/jars/wjoin.jar; needs a JDK
	@$(FIND_JAVA) && $(BIN)/python scripts/build_jar.py

browser: ## find Chromium and its driver, or install them, or say how
	@scripts/find_browser.sh

lint: $(READY) ## check style, layers and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(READY) ## mend style and format where that can be done by machine
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(READY) ## check types with mypy
	@scripts/link_layers.sh
	@$(BIN)/mypy

docs: $(READY) ## check the docs: links, SQL blocks, doctests, grammar/errors.md, examples
	@$(FIND_JAVA) && $(PYTEST) tests/test_docs.py $(wildcard tests/*/test_examples.py) $(ARGS)

check: lint types test matrix-ci ## what CI runs

lock: ## write requirements.lock anew with the newest versions that fit pyproject.toml
	@PYTHON="$(PYTHON)" scripts/lock.sh

wheel: $(READY) ## build sdist and wheel, and try the wheel alone on every Python: ARGS="--pythons 3.12"
	@$(FIND_JAVA) && $(BIN)/python scripts/wheel.py $(ARGS)

screenshots: $(READY) browser ## take the pictures of EXPLAIN and of the live page in the docs
	@$(FIND_JAVA) && PYTHONPATH=. $(BIN)/python scripts/screenshots.py

site: $(READY) ## build the documentation as a site, build/site/index.html
	@$(BIN)/python scripts/site.py build/site-source
	@$(BIN)/python -m uv tool run --quiet 'zensical>=0.0.20,<0.2' build --strict --config-file build/mkdocs.yml
	@echo "build/site/index.html"

clean: ## remove everything that make has built
	rm -rf $(VENV) .matrix .typecheck .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf build dist wjoin.egg-info spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
