# What the rules share: the plan of the run, which answers for the checked configuration.

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path

# The folder of this file, whichever workflow takes its rules.
SOURCES = Path(str(workflow.current_basedir)).parents[1] / "src"
if SOURCES.is_dir():
    # The rules run `python -m actionspan` of this checkout, installed or not, in any environment.
    sys.path.insert(0, str(SOURCES))
    os.environ.update(PYTHONPATH=str(SOURCES))
elif find_spec("actionspan") is None:
    sys.exit("actionspan is not installed here: pip install 'actionspan[workflow,mpi]'")

from actionspan.errors import InputError
from actionspan.finetune.settings import HEADS
from actionspan.workflow.dataset import Storage
from actionspan.workflow.features import drop_features, found_weights, keep_features
from actionspan.workflow.jobs import (
    Messages,
    check_jobs,
    failed_jobs,
    start_this_python,
    stop_from_a_thread,
)
from actionspan.workflow.messages import failures_text, print_briefly
from actionspan.workflow.mistakes import explain_mistakes
from actionspan.workflow.outcomes import of_fold
from actionspan.workflow.runs import (
    RunName,
    flags,
    one_of,
    run_pattern,
    seeded,
    seeded_flags,
)
from actionspan.workflow.sections import fill_in
from actionspan.workflow.steps import step
from actionspan.workflow.training import LEARNING, STREAMS
from actionspan.workflow.plan import Plan
from actionspan.plugins import plugins
from actionspan.jobs.takeover import begin_run
from actionspan.temporal.settings import MODELS as KNOWN_MODELS
from actionspan.temporal.settings import ON_SEQUENCES

# Only storage and the prefix of a module read the mark, which takes 2 kB a file.
is_main = workflow.modifier.is_main_snakefile()
unmarked = is_main and not storage.default_storage_provider
files = Storage(storage, None if unmarked else local)
begin_run(main=workflow.is_main_process)
start_this_python()
if workflow.is_main_process and is_main:
    gc.disable()  # until jobs start: a sixth of the time to plan many, for a megabyte
    print_briefly(
        logger, workflow.output_settings, workflow.resource_settings.cores or 1
    )
    explain_mistakes(workflow.rules, config)
    stop_from_a_thread()
fill_in(config)  # a workflow that takes this one as a module gives what it changes

try:
    plan = Plan(
        config,
        " + ".join(map(os.path.relpath, workflow.configfiles)) or "the configuration",
        files,
        # of a module's configuration nobody knows what came from the command line
        workflow.config_settings.config if is_main else config,
        workflow.resource_settings.cores if workflow.is_main_process else None,
    )
    methods = {each.name for each in workflow.deployment_settings.deployment_method}
    image = plan.cluster.container(wanted="APPTAINER" in methods)
except InputError as error:
    sys.exit(str(error))

LIMITS = flags(config["video"], "max_pixels", "max_frames")
# Through the environment, not `params`: a change does not make finished videos again.
os.environ.update(
    ACTIONSPAN_LIMITS=LIMITS,
    ACTIONSPAN_FAULTS=flags(
        {**config["dataset"], **config["video"]}, "on_bad_input", "stall_seconds"
    ),
)


def decoding_mb(wildcards, threads):
    """Return the memory of a job that decodes `threads` of the largest videos at once."""
    return 300 + threads * (300 + 45 * config["video"]["max_pixels"] // 10**6)


def encoding_mb(wildcards):
    """Return the memory of a job that decodes and encodes: each video has networks of its own."""
    processes = config["video"]["processes"]
    return decoding_mb(wildcards, processes) + 3000 * processes


def figure_files(path, caption, category):
    """Return a figure as SVG, which Snakemake's report shows, and as PNG."""
    shown = report(
        f"{path}.svg",
        caption=f"../report/{caption}.rst",
        category=category,
        labels={"figure": path.removeprefix("results/")},
    )
    return [shown, f"{path}.png"]


minutes = plan.cluster.minutes
# A group's rules run one after another: the profiles of clusters give each rule a lane. Here, as
# Snakemake does not pass limits on to the nodes, where it counts a group's cores a second time.
workflow.register_resource("lane", 1)
messages = Messages()


onstart:
    gc.enable()
    logger.addHandler(messages)
    try:
        check_jobs(workflow)
    except InputError as error:
        sys.exit(str(error))
    plan.dataset.keep_shards()
    if plan.features.takes_over:
        keep_features(workflow, plan.features.shard_files)


onerror:
    print(failures_text(failed_jobs(workflow, messages.of)), file=sys.stderr)
