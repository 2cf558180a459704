"""Feature shards that a run makes again are kept beside the new ones until all of these are there.

Snakemake deletes the outputs of a job before it starts. A hard link keeps such a file, and takes no
room while nothing is deleted. Jobs take over from it what still stands.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_FOLDER = Path("results/features/earlier")  # a folder for each run since the last whole one


def keep_features(workflow: Any, shards: Sequence[str]) -> None:
    """Link the feature shards that jobs of this run make again.

    Where the file system has no hard links, nothing is kept, and every video is encoded again.
    """
    made = {str(file) for job in workflow.dag.needrun_jobs() for file in job.output}
    there = [Path(shard) for shard in shards if shard in made and Path(shard).is_file()]
    if not there:
        return
    with suppress(OSError):
        runs = [int(path.name) for path in _FOLDER.glob("*") if path.name.isdecimal()]
        run = _FOLDER / str(max(runs, default=0) + 1)
        run.mkdir(parents=True)
        for shard in there:
            os.link(shard, run / shard.name)


def drop_features(shards: Sequence[str]) -> None:
    """Remove what earlier runs left, after a run with success, if no shard is missing."""
    if all(map(os.path.isfile, shards)):
        shutil.rmtree(_FOLDER, ignore_errors=True)
