# Two environments in one folder: `demo` needs what users install, the rest needs the tools as well.
VENV := .venv
PIP := $(VENV)/bin/python -m pip
INSTALL := $(PIP) install --quiet --disable-pip-version-check --retries 10 --timeout 60
WORKERS ?= auto
SOURCES := harness plugins tests benchmarks hatch_build.py

.PHONY: demo test lint rules format types bench pins clean

demo: $(VENV)/.installed
	$(VENV)/bin/harness --model baseline --judge lexical --tasks interests_all --data sample
	$(VENV)/bin/harness --model baseline --judge lexical --tasks gist_synthetic --data sample --limit 20
	$(VENV)/bin/harness --model baseline --tasks perrec_easy --data sample

# No test may need the hub.
test: export HF_HUB_OFFLINE = 1

# The tests run even where the lint found something: one run tells everything that is wrong.
test: $(VENV)/.installed-dev
	@status=0; \
	$(MAKE) --no-print-directory --keep-going lint || status=1; \
	$(VENV)/bin/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist loadgroup || status=$$?; \
	exit $$status

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

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/results

$(VENV)/.made:
	@.ci/make-environment $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml hatch_build.py
	@echo "installing harness into $(VENV)"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.made pyproject.toml hatch_build.py
	@echo "installing harness and its tools into $(VENV)"
	@$(INSTALL) -e '.[dev]'
	@touch $(VENV)/.installed $@
