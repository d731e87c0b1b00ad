# Commands that set up a fresh machine by themselves: `make quickstart`, `make test` and `make test-all`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS := runs/quickstart
UPDATES := 400
EPISODES := 1000

# Compiled once, and not by every process that a test starts, also where Python has been told to keep nothing.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup quickstart test test-all lint types pytest docs notebooks bench tables fuzz crash stress versions release clean

setup: $(STAMP)

# Installed again whenever what is to be installed changes.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,gallery,photographs,faiss,serve,milvus,onnx,transformers,test,bench,docs]'
	touch $(STAMP)

# Two ways to learn the same alphabets, measured on alphabets that neither has seen. Interrupted, it goes on the next time.
quickstart: setup
	$(BIN)/rankshot train --out $(RUNS)/siamese --method siamese --updates $(UPDATES) --resume
	$(BIN)/rankshot train --out $(RUNS)/map-dlm --method map-dlm --updates $(UPDATES) --resume
	$(BIN)/rankshot evaluate $(RUNS)/map-dlm $(RUNS)/siamese --untrained --episodes $(EPISODES)

# What one waits for while changing something: all but the tests marked `slow`.
test: lint types
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow'

# What every change must pass: the same and the slow ones, in one run of pytest, whose closing line comes last.
test-all: lint types pytest

lint: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .

types: setup
	$(BIN)/mypy

# Three workers on two cores: many of the slow tests wait for a server, a browser or a process.
pytest: setup
	$(BIN)/pytest -n 3 --dist worksteal

# One run of every comparison; prints what it finds and writes results/.
bench: setup quickstart
	$(BIN)/python -m benchmarks.quickstart
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.heap
	$(BIN)/python -m benchmarks.importing
	$(BIN)/python -m benchmarks.gallery
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.objectives

# The site, into site/: open site/index.html. Nothing is fetched, and a warning is an error. The variable silences a notice that is
# printed before every build, about the end of mkdocs-material in May 2027.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Runs the notebooks and keeps what they print and draw.
notebooks: setup
	$(BIN)/python -m benchmarks.notebooks

# Campaigns, at length: hostile inputs, crashes and full disks, many threads and processes, other versions of Python and of
# the packages. See docs/campaigns.md.
fuzz: setup
	$(BIN)/python -m campaigns.fuzz

crash: setup
	$(BIN)/python -m campaigns.crash

stress: setup
	$(BIN)/python -m campaigns.stress

versions: setup
	$(BIN)/python -m campaigns.versions

# The files of a release, into dist/, checked. Nothing is uploaded.
release: setup
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# Puts what was measured last into the documentation.
tables: setup
	$(BIN)/rankshot reproduce --tables
	$(BIN)/python -m benchmarks.tables

clean:
	rm -rf $(VENV) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
