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
GRADLE_FILES := build.gradle settings.gradle gradle.properties $(shell find jvm -name '*.gradle')
JVM_SOURCES := $(GRADLE_FILES) LICENSE $(shell find jvm -type f -path '*/src/main/*')
VENV := .venv
INSTALLED := $(VENV)/.installed
TEST_JARS := jvm/build/.test-jars

# Gradle and Spark then run on the same JDK, whatever a distribution's wrapper would choose.
find_java = export JAVA_HOME=$${JAVA_HOME:-$$(dirname "$$(dirname "$$(readlink -f "$$(command -v javac)")")")}
gradle = $(find_java); gradle --no-daemon -q
spark_jars = $$($(VENV)/bin/python -c 'import os, pyspark; print(os.path.join(pyspark.__path__[0], "jars"))')

.PHONY: help
help: ## Explain the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(INSTALLED) ## Install everything: system packages (as root), .venv, the jar

.PHONY: jar
jar: $(JAR) ## Build the jar into pyspark_iceberg_crypto/jars/

.PHONY: demo
demo: $(INSTALLED) $(JAR) ## Encrypt 336,776 flights, prove it, read them back
	@$(VENV)/bin/iceberg-crypto demo

.PHONY: test
test: $(INSTALLED) $(JAR) $(TEST_JARS) | test-tools ## Run all tests, Java's and Python's side by side, and say how long each took
	@rm -f $(TIMES); $(MAKE) --no-print-directory -j2 test-jvm test-py; cat $(TIMES); $(call took,all tests)

# A few of the workers of Python's tests wait at any time: for a timeout, a server, or the one Spark session.
POOL := -n 3 --dist loadgroup
TIMES := jvm/build/test-times
took = printf '%-12s %2d min %02d s\n' "$(1)" $$((SECONDS / 60)) $$((SECONDS % 60))

.PHONY: test-jvm
test-jvm: $(INSTALLED) $(JAR) $(TEST_JARS) ## Run the Java tests
	@$(gradle) junit -PsparkJars="$(spark_jars)"; $(call took,Java) | tee -a $(TIMES)

.PHONY: test-py
test-py: $(INSTALLED) $(JAR) $(TEST_JARS) | test-tools ## Run the Python tests (ARGS="-k name" chooses some)
	@$(VENV)/bin/pytest $(POOL) $(ARGS); $(call took,Python) | tee -a $(TIMES)

# Random tests repeat by their seed; without one they are the same in every run.
DRAWN := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
nightly soak: export ICEBERG_CRYPTO_SEED := $(DRAWN)

.PHONY: nightly
nightly: $(INSTALLED) $(JAR) $(TEST_JARS) | test-tools ## Run all tests on all catalogs, then soak; with a new seed (SEED=n repeats one)
	@echo "SEED=$(DRAWN)"
	@$(MAKE) --no-print-directory test ARGS='-m "" $(ARGS)'
	@$(MAKE) --no-print-directory soak SEED=$(DRAWN)

.PHONY: soak
soak: $(INSTALLED) $(JAR) $(TEST_JARS) ## Kill writers, 50 a catalog; 1,000 commits under load; flip 500 bits a file; fuzz parsers for long
	@echo "SEED=$(DRAWN)"
	$(gradle) junit -PsparkJars="$(spark_jars)" -Psoak=50 -PjunitArgs="--include-classname .*(WritersTest|MetadataHashTest)"
	$(gradle) junit -PsparkJars="$(spark_jars)" -Pfuzz=200000 -PjunitArgs="--include-classname .*FuzzTest"
	ICEBERG_CRYPTO_FUZZ=200000 $(VENV)/bin/pytest tests/unit/test_fuzz.py
	ICEBERG_CRYPTO_FLIPS=500 $(VENV)/bin/pytest tests/tamper

.PHONY: lint
lint: $(INSTALLED) ## Check style and types of Python and Java
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(gradle) checkFormat

.PHONY: format
format: $(INSTALLED) ## Format Python and Java
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(gradle) applyFormat

.PHONY: publish-local
publish-local: tools ## Publish the jar to the local Maven repository, for --packages
	$(gradle) publishToMavenLocal

.PHONY: clean
clean: ## Remove everything that was built, .venv included
	rm -rf $(VENV) .gradle build dist jvm/build pyspark_iceberg_crypto/jars
	rm -rf .mypy_cache .pytest_cache .ruff_cache __pycache__
	find pyspark_iceberg_crypto tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Quick, and run every time. An order-only prerequisite of real files: it rebuilds none of them.
.PHONY: tools
tools:
	@dev/tools.sh "$(PYTHON)"

.PHONY: test-tools
test-tools:
	@dev/tools.sh "$(PYTHON)" tests

$(JAR): $(JVM_SOURCES) | tools
	@echo "building $(@F)"
	@$(gradle) :$(ARTIFACT):jar
	@mkdir -p $(@D)
	@cp jvm/build/$(ARTIFACT)/libs/$(@F) $@

$(TEST_JARS): $(GRADLE_FILES) | tools
	@echo "fetching the tests' servers, drivers and cloud libraries"
	@$(gradle) restServerJars metastoreServerJars nessieServerJars testJars kmsJars
	@touch $@

# Editable: Python sources and the jar are used where they stand, so neither makes this stale.
$(INSTALLED): pyproject.toml gradle.properties hatch_build.py | tools $(JAR)
	@echo "installing Python packages into $(VENV)"
	@test -x $(VENV)/bin/python || "$(PYTHON)" -m venv $(VENV)
	@$(find_java); $(VENV)/bin/pip install -q --disable-pip-version-check -e '.[demo,test,lint]'
	@touch $@
