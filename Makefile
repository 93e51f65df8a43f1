# The one door: `make quickstart`, `make test`, `make lint`. Nothing here but `make deps` needs root.
#
# The environment is .venv in this checkout. It is built once and reused until pyproject.toml or constraints.txt says
# something else: the stamp's name holds a digest of both, so a newer date alone, or a branch and back, costs nothing. The
# checkout's place is part of the digest, because programs in .venv hold their interpreter's absolute path.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PY := .venv/bin/python
KEY := $(shell { pwd -P; cat pyproject.toml constraints.txt; } | cksum | tr -d ' ')
STAMP := .venv/.installed-$(KEY)
# How many processes the tests use.
WORKERS ?= 2
# System packages by apt. The core needs none; the tests of the kernels run them in a simulator that g++ compiles, those of alerts talk to
# a real Alertmanager and hand the rules to promtool, those of the integrity page drive a real Chromium. Where one of
# these is missing, its tests are skipped and say so.
SYSTEM_PACKAGES ?= g++ prometheus prometheus-alertmanager chromium chromium-driver

.PHONY: help venv quickstart demo up down test test-all nightly lint kernels format deps bench constraints clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

venv: $(STAMP)  ## build or refresh .venv

$(STAMP): tools/build_venv.sh
	@bash tools/build_venv.sh "$(STAMP)"

quickstart: $(STAMP)  ## a real checkpoint sealed, damaged, found out and restored, on this machine
	$(PY) examples/quickstart.py

demo: $(STAMP)  ## a run protected, lost and resumed: training, Airflow, S3; under five minutes (KEEP=1 leaves it up)
	$(PY) examples/demo.py

up: $(STAMP)  ## Airflow with the DAGs and embedded stores on this machine; prints the URL
	$(PY) tools/local_airflow.py up

down: $(STAMP)  ## end what `make up` started; the data stays
	$(PY) tools/local_airflow.py down

test: $(STAMP)  ## all tests but the nightly ones
	$(PY) -m pytest -n $(WORKERS) --dist loadfile

test-all: $(STAMP)  ## all tests
	$(PY) -m pytest -n $(WORKERS) --dist loadfile -m 'nightly or not nightly'

nightly: $(STAMP)  ## only the long ones: fuzzing at length, differential oracles, large files, package installs
	$(PY) -m pytest -n $(WORKERS) --dist loadfile -m nightly

lint: $(STAMP)  ## ruff, mypy --strict, import contracts, secrets
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict -p seawall
	.venv/bin/lint-imports --no-cache
	$(PY) tools/scan_secrets.py

kernels: $(STAMP)  ## compile the CUDA kernels for four GPU generations, without a GPU: registers, spills, instructions
	@$(PY) -m uv pip install --python $(PY) --quiet --constraints constraints.txt --requirements pyproject.toml --extra gpu-ci \
	    || echo "make kernels: the compiler's wheels (extra gpu-ci) could not be installed"
	$(PY) tools/kernel_gate.py

format: $(STAMP)  ## let ruff fix what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

deps:  ## system packages by apt (asks for root only if one is missing)
	@bash tools/install_system_packages.sh $(SYSTEM_PACKAGES)

bench: $(STAMP)  ## kernels and codecs beside their peers, seawall beside rclone, restic and sha256sum; minutes
	$(PY) -m uv pip install --python $(PY) --quiet --no-deps -r bench/requirements.txt
	$(PY) bench/kernels.py
	$(PY) bench/archive.py
	$(PY) bench/sync_vs_rclone.py

constraints: $(STAMP)  ## resolve constraints.txt anew for core, airflow, training, gpu and dev together
	bash tools/resolve_constraints.sh

clean:  ## caches and build outputs; .venv stays (rm -r .venv to start over)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
