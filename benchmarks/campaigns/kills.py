"""Commands killed at random moments: started again they give the same bits; nothing is left."""

import signal
from pathlib import Path
from random import Random

from campaigns.cases import Result, fault, wrong
from campaigns.pipeline import Pipeline, Step, finished_run, left_behind, run, torn


class Kills:
    """A command is killed one to three times and then left to end."""

    name = "kills"
    count = 400
    _pipeline: Pipeline

    def prepare(self, folder: Path) -> None:
        """Run the pipeline."""
        self._pipeline = finished_run()

    def case(self, random: Random, folder: Path) -> Result:
        """Kill a command and start it again."""
        step = _in_processes(self._pipeline.choose(random), random)
        self._pipeline.lay(step.inputs, folder)
        kills = 0
        for _ in range(random.randint(1, 3)):
            ended = run(step, folder, kill_after=random.uniform(0, 1.1) * step.seconds)
            kills += ended.status == -signal.SIGKILL
            if ended.left:
                return wrong("processes left", f"{step.name}: {ended.left}", kills)
            if names := torn(self._pipeline, step, folder):
                return wrong("a torn file under its final name", f"{step.name}: {names[0]}", kills)
        ended = run(step, folder)
        if (found := fault(ended)) or ended.status:
            outcome = found.outcome if found else "the next start fails"
            return wrong(outcome, f"{step.name}: {ended.errors[-300:]}", kills)
        if names := self._pipeline.other(step, folder):
            return wrong("other bits", f"{step.name}: {names[0]}", kills)
        if names := left_behind(step, folder):
            return wrong("files left behind", f"{step.name}: {names[0]}", kills)
        return Result("same bits" if kills else "ended before the kill", faults=kills)


def _in_processes(step: Step, random: Random) -> Step:
    """Return a step with two workers in some of the cases where it may have several."""
    if "--processes" not in step.words or random.random() < 0.7:
        return step
    place = step.words.index("--processes") + 1
    words = (*step.words[:place], "2", *step.words[place + 1 :])
    return Step(words, step.inputs, step.outputs, step.seconds + 3)  # workers import for seconds


CAMPAIGN = Kills()
