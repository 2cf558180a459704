"""The commands of the workflow on a tiny data set, one by one: their files, and what they give.

The commands are those that Snakemake would run, so that no campaign lags behind the rules. Each
runs in a folder of its own that holds its inputs and nothing else.
"""

import atexit
import importlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from random import Random

import yaml

from actionspan.storage.writing import read_tsv
from actionspan.workflow.steps import step_module
from campaigns.children import Ended, call, command

ROOT = Path(__file__).parents[2]
TINY = {
    "demo": {"videos": 4, "shortest_seconds": 5.0, "longest_seconds": 6.0},
    "dataset": {"videos_per_shard": 2},
    "features": {"rescale": {"components": 8}},
    "temporal": {
        "models": ["origin", "span", "stream"],
        "training": {"epochs": 2, "hidden": 16, "members": 2},
    },
    "proposals": {"evaluator": {"epochs": 2}, "density": {"epochs": 2}},
    "evaluation": {"timelines": 1, "baselines": ["random", "tag"]},
}
TIMED = ("timing.json",)  # seconds, which are never the same
_SHELL = re.compile(r"^Shell command: (.*-m actionspan .*)$", re.MULTILINE)
_LATE_IMPORTS = (
    "av cv2 h5py matplotlib.backends.backend_svg scipy.ndimage scipy.optimize torch torchvision"
)


@dataclass(frozen=True)
class Step:
    """A command and its files under results/."""

    words: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    seconds: float  # that it took in a fork

    @property
    def name(self) -> str:
        """Its first two words."""
        return " ".join(self.words[:2])


class Pipeline:
    """A finished run in `folder`, and the steps that made it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        steps = [step_module(" ".join(words[:2])) for words in _planned(folder)]
        for name in (*_LATE_IMPORTS.split(), *steps):
            importlib.import_module(name)
        self.steps = [self._first_run(words) for words in _planned(folder)]

    def _first_run(self, words: Sequence[str]) -> Step:
        place = self.folder / "first"
        inputs = self._named(words)
        self.lay(inputs, place)
        before = set(_files(place))
        ended = call(command(words), place)
        if ended.status or ended.left:
            raise SystemExit(f"actionspan {' '.join(words)}: {ended.errors}")
        outputs = sorted(set(_files(place)) - before)
        for name in outputs:
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (place / name).rename(target)
        shutil.rmtree(place)
        return Step(tuple(words), tuple(sorted(inputs)), tuple(outputs), ended.seconds)

    def _named(self, words: Sequence[str]) -> set[str]:
        """Return the files that a command names, and the videos of a shard that it names."""
        files = {word for word in words if (self.folder / word).is_file()}
        for flag, word in zip(words, words[1:], strict=False):
            if flag == "--shard":
                files |= {row["path"] for row in read_tsv(self.folder / word)}
        return files

    def choose(self, random: Random, *, reading: bool = False) -> Step:
        """Return a step; every command is as likely as any other. `reading`: one with inputs."""
        steps = [step for step in self.steps if step.inputs or not reading]
        name = random.choice(sorted({step.name for step in steps}))
        return random.choice([step for step in steps if step.name == name])

    def lay(self, inputs: "Sequence[str] | set[str]", folder: Path) -> None:
        """Put links to inputs into a folder."""
        folder.mkdir(exist_ok=True)
        for name in inputs:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(self.folder / name)

    def other(self, step: Step, folder: Path) -> list[str]:
        """Return the outputs in a folder that are missing, or not those of the finished run."""
        return [
            name
            for name in step.outputs
            if Path(name).name not in TIMED
            and (not (folder / name).is_file() or bits(folder / name) != bits(self.folder / name))
        ]


def run(step: Step, folder: Path, *, kill_after: float | None = None) -> Ended:
    """Run a step in a folder."""
    return call(command(step.words), folder, kill_after=kill_after)


def bits(path: Path) -> bytes:
    """Return what must be the same in each run: a file without its column of seconds."""
    content = path.read_bytes()
    if path.suffix == ".tsv":
        rows = [line.split(b"\t") for line in content.split(b"\n")]
        if b"seconds" in rows[0]:
            column = rows[0].index(b"seconds")
            rows = [row[:column] + row[column + 1 :] for row in rows]
            return b"\n".join(b"\t".join(row) for row in rows)
    return content


def torn(pipeline: Pipeline, step: Step, folder: Path) -> list[str]:
    """Return the outputs under their final names that are not complete."""
    others = pipeline.other(step, folder)
    return [name for name in others if (folder / name).exists()]


def left_behind(step: Step, folder: Path) -> list[str]:
    """Return the files that a finished step has left besides its outputs."""
    return sorted(set(_files(folder / "results")) - _within(step.inputs) - _within(step.outputs))


def _within(names: Sequence[str]) -> set[str]:
    return {str(Path(name).relative_to("results")) for name in names}


@cache
def finished_run() -> Pipeline:
    """Make the tiny run, once in this process; its folder goes at the end."""
    folder = Path(tempfile.mkdtemp(prefix="pipeline-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # forks end by os._exit
    return Pipeline(folder)


@cache
def _planned(folder: Path) -> list[list[str]]:
    """Return the words of each command of a plain run and its analysis, in their order."""
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    words += ["--directory", str(folder), "--configfile", str(folder / "tiny.yaml"), "--cores", "1"]
    words += ["--dry-run", "--printshellcmds", "--forceall", "all", "analysis"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    found = _SHELL.findall(done.stdout + done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"the plan of a tiny run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    commands = []
    for line in found:
        line = line.partition(" -m actionspan ")[2].partition(" > results/logs/")[0]
        # limits come through the environment; here those of the commands themselves do
        commands.append(shlex.split(re.sub(r"\$ACTIONSPAN_\w+", "", line)))
    return _in_order(commands)


def _in_order(commands: list[list[str]]) -> list[list[str]]:
    """Return commands so that each comes after those whose outputs it names: groups mix them."""

    def outputs(words: list[str]) -> set[str]:
        named = {word for flag, word in pairwise(words) if flag.startswith("--out")}
        return named - {"results/dataset"}  # a folder of several commands

    def waits(words: list[str], others: list[list[str]]) -> bool:
        made = tuple(chain.from_iterable(outputs(other) for other in others))
        own = outputs(words)
        return any(word not in own and word.startswith(made) for word in words) if made else False

    waiting, ordered = list(commands), []
    while waiting:
        free = (each for each in waiting if not waits(each, [o for o in waiting if o is not each]))
        following = next(free, waiting[0])
        waiting.remove(following)
        ordered.append(following)
    return ordered


def _files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
