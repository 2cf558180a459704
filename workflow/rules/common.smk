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
from actionspan.plan.flags import flags, seeded_flags
from actionspan.plan.folds import of_fold
from actionspan.plan.names import one_of, run_pattern
from actionspan.plan.recognition import LEARNING, STREAMS
from actionspan.plan.workflow import Plan
from actionspan.temporal.settings import MODELS as KNOWN_MODELS
from actionspan.temporal.settings import ON_SEQUENCES

try:
    plan = Plan(
        config,
        ROOT / "workflow/schemas/config.schema.yaml",
        " + ".join(os.path.relpath(path) for path in workflow.configfiles),
    )
except InputError as error:
    sys.exit(str(error))
