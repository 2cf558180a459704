# What the rules share: the plan of the run, which answers for the checked configuration.

import os
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
# The rules run `python -m actionspan` of this checkout, installed or not, in any environment.
sys.path.insert(0, str(ROOT / "src"))
os.environ.update(PYTHONPATH=str(ROOT / "src"))

from actionspan.errors import InputError
from actionspan.finetune.names import HEADS
from actionspan.papers.aavg import targets as aavg
from actionspan.papers.aavg.comparisons import curve_figures
from actionspan.papers.mtn import targets as mtn
from actionspan.papers.runs import seeded, split_seed
from actionspan.plan.code import shard_step, step
from actionspan.plan.earlier import drop_features, keep_features
from actionspan.plan.failures import failures_text
from actionspan.plan.flags import flags, seeded_flags
from actionspan.plan.folds import of_fold
from actionspan.plan.jobs import Messages, check_jobs, failed_jobs
from actionspan.plan.names import one_of, run_pattern
from actionspan.plan.recognition import LEARNING, STREAMS
from actionspan.plan.workflow import Plan
from actionspan.running.takeover import begin_run
from actionspan.temporal.settings import MODELS as KNOWN_MODELS
from actionspan.temporal.settings import ON_SEQUENCES

begin_run(main=workflow.is_main_process)

try:
    plan = Plan(
        config,
        ROOT / "workflow/schemas/config.schema.yaml",
        " + ".join(os.path.relpath(path) for path in workflow.configfiles),
    )
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


minutes = plan.cluster.minutes
# A group's rules run one after another: the profiles of clusters give each rule a lane. Here, as
# Snakemake does not pass limits on to the nodes, where it counts a group's cores a second time.
workflow.register_resource("lane", 1)
messages = Messages()


onstart:
    logger.addHandler(messages)
    try:
        check_jobs(workflow)
    except InputError as error:
        sys.exit(str(error))
    if plan.features.takes_over:
        keep_features(workflow, plan.features.shard_files)


onerror:
    print(failures_text(failed_jobs(workflow, messages.of)), file=sys.stderr)
