"""A damaged input of a command: one line that says so, or the same result.

A change that leaves a well-formed text, as an editor might make it, may be read as such; another
result from a damaged HDF5 or torch file is wrong.
"""

import shutil
from pathlib import Path
from random import Random

from campaigns.cases import Result, fault, wrong
from campaigns.damage import damaged
from campaigns.pipeline import Pipeline, finished_run, run

TEXTS = (".json", ".tsv", ".csv", ".txt")
VIDEOS = (".mp4",)  # the campaign `videos` is about them


class Inputs:
    """One of the input files of a command is damaged or missing."""

    name = "inputs"
    count = 1500
    _pipeline: Pipeline

    def prepare(self, folder: Path) -> None:
        """Run the pipeline."""
        self._pipeline = finished_run()

    def case(self, random: Random, folder: Path) -> Result:
        """Run a command with a damaged input."""
        step = self._pipeline.choose(random, reading=True)
        name = random.choice(
            [name for name in step.inputs if Path(name).suffix not in VIDEOS] or step.inputs
        )
        self._pipeline.lay(step.inputs, folder)
        path = folder / name
        path.unlink()
        content, way = damaged((self._pipeline.folder / name).read_bytes(), random)
        if random.random() < 0.05:
            way = "missing"
        else:
            path.write_bytes(content)
        case = f"actionspan {' '.join(step.words)}\n{name}: {way}"
        ended = run(step, folder)
        (folder / "errors.txt").write_text(f"{case}\n{ended.errors}")
        if found := fault(ended):
            return Result(found.outcome, f"{step.name}: {name}: {way}: {found.detail}", wrong=True)
        if ended.status:
            return Result("refused in a line")
        changed = self._pipeline.other(step, folder)
        if not changed:
            return Result("same result")
        if path.suffix in TEXTS:
            return Result("read as edited")
        if path.suffix in VIDEOS:
            return Result("other pictures")
        if "rejected" in ended.errors:
            return Result("rejected in a line")
        shutil.rmtree(folder / "results/logs", ignore_errors=True)
        return wrong("another result without a word", f"{step.name}: {name}: {way}: {changed[0]}")


CAMPAIGN = Inputs()
