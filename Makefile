# `make demo` and `make test` do all their set-up themselves, and nothing when nothing changed.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test build test-native test-python test-pythons test-import-orders test-image bench-core bench bench-quick acme check format clean distclean

# 3.11 first: the tests against Reverb need it too, and one build then serves both.
PYTHONS ?= 3.11 3.12 3.13 3.10
# What `make test` runs, in this order; see scripts/run_suites.py.
SUITES ?=
PY := .venv/bin/python

help:
	@echo 'make demo          set everything up and train on CartPole from a replay server'
	@echo 'make test          set everything up and run every test suite and check'
	@echo 'make build         the Python environment .venv with the native module, for development'
	@echo 'make test-native   the native tests alone;   make test-python   the Python tests alone'
	@echo 'make test-pythons  the quick tests on every CPython 3.10 to 3.13 of this machine'
	@echo 'make test-import-orders  every order of importing TensorFlow, Reverb, PyTorch, JAX and us'
	@echo 'make test-image    builds the Docker image and drives the server in it'
	@echo 'make acme          trains agents of Acme on dm-reverb and on us; half an hour'
	@echo 'make bench-core    how fast the core inserts, selects and samples'
	@echo 'make bench         compares with dm-reverb, cpprb, flashbax, TorchRL; half an hour'
	@echo 'make bench-quick   the same with fewer sizes, rounds and peers; within three minutes'
	@echo 'make check         style, layers, exported symbols;   make format   applies the style'
	@echo 'make clean         removes what was built;   make distclean   and the environments'

build/system: scripts/system_packages.txt scripts/install_system.sh
	scripts/install_system.sh
	@mkdir -p build && touch $@

# The CUDA compiler, and what reads its output, for the tests; without them kernels are left out.
build/nvcc: scripts/install_nvcc.sh
	@mkdir -p build
	scripts/install_nvcc.sh && touch $@ || test $$? = 3

demo: build/system
	scripts/setup_venv.sh .venv demo $(PYTHONS)
	$(PY) examples/cartpole/main.py

build: build/system
	scripts/setup_venv.sh .venv demo,test,dev $(PYTHONS)

# By a Python outside the environments, which the suites make themselves.
test: build/system build/nvcc
	"$$(scripts/find_python.sh $(PYTHONS))" scripts/run_suites.py $(SUITES)

test-native test-python test-pythons: build/system
	"$$(scripts/find_python.sh $(PYTHONS))" scripts/run_suites.py --pythons 3.10,3.11,3.12,3.13 $(@:test-%=%)

test-image: build/system
	"$$(scripts/find_python.sh $(PYTHONS))" scripts/run_suites.py image

test-import-orders: build/system
	GEAR_REVERB_ALL_ORDERS=1 "$$(scripts/find_python.sh $(PYTHONS))" scripts/run_suites.py imports

# What needs Reverb beside us is measured only where there is a CPython 3.11.
bench-core: build/system
	scripts/setup_venv.sh .venv bench $(PYTHONS)
	scripts/setup_compat.sh || test $$? = 3
	$(PY) benchmarks/core.py

# Everything it compares with lives in .venv-bench, which nothing else needs.
bench bench-quick: build/system
	scripts/setup_bench.sh
	.venv-bench/bin/python benchmarks/compare/run.py $(if $(filter bench-quick,$@),--quick)

# Agents that were not written for us, in an environment of their own.
acme: build/system
	scripts/setup_acme.sh
	.venv-acme/bin/python examples/acme/adders.py
	.venv-acme/bin/python examples/acme/compare.py --check

check: build
	scripts/check.sh

format: build
	.venv/bin/ruff check --fix --quiet .
	.venv/bin/ruff format .
	find native benchmarks -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' | xargs .venv/bin/clang-format -i

clean:
	rm -rf build dist *.egg-info gear_reverb/_native.*.so

distclean: clean
	rm -rf .venv .venv-compat .venv-newest .venv-bench .venv-acme .venv-cuda
