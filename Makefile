# Everything a person or a machine does with this tree. A Python of 3.11 or newer is all that is needed beforehand.
#
#   make demo     run the sample workflow and look at it
#   make cloud-demo  the sample project by wakes alone, on services that stand for a cloud's
#   make test     the whole suite
#   make cloud    only the tests on servers that stand for a cloud's services
#   make kubernetes  only the tests on a real Kubernetes API server, which is built first (a quarter of an hour, once)
#   make ui-tests  only the pages of the web UI in a real browser
#   make portable  the acceptance tests without what only Linux has, as on macOS
#   make canary   unit tests and examples with the newest and with the oldest versions of all dependencies
#   make lock     write the lock files of the images anew
#   make release  build sdist, wheel, SBOM and image twice, compare them, and write them to dist
#   make soak     what takes real time: faults on Postgres at full size, half an hour; 10,000 kills by ork chaos, about two hours
#   make check    format, lint, types, import contracts, fast tests
#   make bench    the small performance scenarios, with the floors of the same run
#   make perf     count the calls of the hot paths and the walk of one run, and compare with the last release
#   make mutants  break the protocol in almost a hundred ways, and show which simulated world notices each
#   make docs     build the documentation as a site, in build/site
#   make ui       build the web pages from ui/ (needs Node 20 or newer; only to change them)
#   make ui-check build them elsewhere, compare bytes, and test their parts
#   make ui-types write the API's types for them
#   make format   put the code into its form
#   make clean    remove what the other targets made

VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.ork
TESTS ?= tests
# Processes that run tests. More than the two processors of a small machine, because many tests wait for something.
JOBS ?= 3

# A cold start is only as quick as its bytecode: let Python keep it, whatever the caller's environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo cloud-demo test docs cloud kubernetes ui-tests portable canary lock release soak check lint format bench perf mutants ui ui-check ui-types clean
.DELETE_ON_ERROR:

demo: $(STAMPS)/run
	@rm -rf examples/etl/.ork examples/etl/out
	cd examples/etl && $(abspath $(BIN))/ork run workflow.yaml
	cd examples/etl && $(abspath $(BIN))/ork show @last
	cd examples/etl && $(abspath $(BIN))/ork output @last load

cloud-demo: $(STAMPS)/test
	@$(BIN)/python -m tests.cloud.demo

# Where a component cannot be installed, the tests that need it skip and say why. Kubernetes is built beside the tests, at low
# priority: the tests on it come last, and wait for it.
test: $(STAMPS)/test
	-scripts/components.sh kubernetes helm >/dev/null 2>&1 &
	-scripts/components.sh postgres docker network pgbouncer faketime browser gcs azure
	$(BIN)/python -m pytest -n $(JOBS) $(TESTS)

cloud: $(STAMPS)/test
	-scripts/components.sh postgres gcs azure
	$(BIN)/python -m pytest -n $(JOBS) -m cloud $(TESTS)

kubernetes: $(STAMPS)/test
	-scripts/components.sh postgres docker network kubernetes helm
	$(BIN)/python -m pytest -n $(JOBS) -m kubernetes $(TESTS)

ui-tests: $(STAMPS)/test
	-scripts/components.sh browser dex
	$(BIN)/python -m pytest -n $(JOBS) -m ui $(TESTS)

portable: $(STAMPS)/test
	-scripts/components.sh postgres docker network
	ORK_SYSTEM=portable $(BIN)/python -m pytest -n $(JOBS) tests/acceptance

canary: $(STAMPS)/release
	PATH="$(abspath $(BIN)):$$PATH" scripts/canary.sh newest
	PATH="$(abspath $(BIN)):$$PATH" scripts/canary.sh oldest

lock: $(STAMPS)/release
	PATH="$(abspath $(BIN)):$$PATH" scripts/lock.sh

# RELEASE: options of scripts/release.py, such as --base python:3.12-slim@sha256:… or --no-image
release: $(STAMPS)/release
	$(BIN)/python scripts/release.py $(RELEASE)

soak: $(STAMPS)/test
	-scripts/components.sh postgres docker network pgbouncer faketime minio kubernetes helm
	$(BIN)/python -m pytest -n 2 -m soak -rA --durations=0 $(TESTS)

check: lint
	$(BIN)/python -m pytest -n 4 -q -m "not slow and not cloud" --hypothesis-profile=quick $(TESTS)

lint: $(STAMPS)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(STAMPS)/run
	$(BIN)/ork bench quick

perf: $(STAMPS)/test
	$(BIN)/python -m perf.counts

mutants: $(STAMPS)/test
	$(BIN)/python -m tests.simulation.mutants.hunt

docs: $(STAMPS)/docs
	$(BIN)/python scripts/docs_site.py

ui: ui/node_modules/.package-lock.json
	cd ui && node_modules/.bin/tsc --noEmit && node build.mjs

ui-check: ui/node_modules/.package-lock.json
	cd ui && node_modules/.bin/tsc --noEmit && node test/run.mjs
	rm -rf ui/node_modules/.check && cd ui && node build.mjs node_modules/.check
	diff -r ui/node_modules/.check src/ork/ui/static

ui-types: $(STAMPS)/test
	$(BIN)/python scripts/ui_types.py

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	cd ui && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(STAMPS)/%: pyproject.toml scripts/venv.sh scripts/requirements_met.py
	scripts/venv.sh $(VENV) $*
	@mkdir -p $(STAMPS) && touch $@

clean:
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build
	rm -rf $(STAMPS) examples/*/.ork examples/*/out
	find src tests examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +
