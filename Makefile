# Every target sets up what it needs in .venv: only Python (3.11 or newer), pip and make are assumed.
PYTHON ?= python3
GROUPS ?= dev
VENV := .venv
BIN = $(VENV)/bin
EMPTY :=
TOOLS = $(VENV)/.groups-$(subst $(EMPTY) ,+,$(GROUPS))

# A venv without pip, and pip from outside: Debian's Python has no ensurepip. The version is pinned
# because --group needs pip 25.1 or newer.
NEW_VENV = test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
NEW_PIP = $(PYTHON) -m pip --disable-pip-version-check --python $(BIN)/python install --quiet -c constraints.txt pip
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --quiet

# The requirements of the package, each at its floor.
define LOWEST
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
floors = project["dependencies"] + extras["jax"] + extras["compare"] + extras["fast"]
print(*(requirement.replace(">=", "==") for requirement in floors))
endef
export LOWEST

.DEFAULT_GOAL := help
.PHONY: help demo test lowest check docs bench measure clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.base ## Compare similarities with what comes with the package, and write a report
	@$(BIN)/recos compare

test: $(TOOLS) ## Tests, doctests and the code blocks of README and docs, with branch coverage
	$(BIN)/python -m pytest --cov

check: $(TOOLS) ## Format, lint, types and import direction
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(TOOLS) ## Build the documentation into site/; a warning or a broken link fails
	$(BIN)/zensical build --clean --strict
	$(BIN)/python .ci/check_site.py site

bench: ## Run the benchmarks
	@$(MAKE) --no-print-directory measure GROUPS="dev real"

measure: $(TOOLS)
	$(BIN)/python benchmarks/run.py

lowest: VENV := .venv/lowest
lowest: ## Tests with the oldest versions that pyproject.toml allows
	$(NEW_VENV)
	$(NEW_PIP)
	$(INSTALL) --editable . --group test $$($(BIN)/python -c "$$LOWEST")
	$(BIN)/python -m pytest -W default

clean: ## Remove what the other targets made, but not .venv
	rm -rf site dist recos-compare .cache .coverage .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(VENV)/.base: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) ..."
	@$(NEW_VENV)
	@$(NEW_PIP)
	@$(INSTALL) -c constraints.txt --build-constraint constraints.txt --editable ".[compare]"
	@touch $@

$(TOOLS): $(VENV)/.base
	@echo "Installing the dependency groups: $(GROUPS) (some minutes, the first time) ..."
	@$(INSTALL) -c constraints.txt $(GROUPS:%=--group %)
	@touch $@
