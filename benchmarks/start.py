"""How long `actionspan propose` takes to its first frame, and to the first snippets encoded.

    python benchmarks/start.py VIDEO --model model.safetensors --old OLD/src --repeats 5

starts the command with this version's sources and with those of another version in turn, and ends
it when the first snippets are encoded. It prints wall and CPU seconds of its processes and their
peak memory: medians with the range, and how many times as fast the new one is, paired. One start of
each comes before, so that disk and cache are warm. The other arguments go to the command.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

POINTS = ("first frame", "first snippets encoded")
# What Python runs at its start, also in the process that does the work.
HOOK = """
import importlib.abc, importlib.machinery, json, os, resource, time

def note(point):
    own = time.process_time()
    waits = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()
    cpu = own + sum(map(int, waits[11:13])) / os.sysconf("SC_CLK_TCK")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with open(os.environ["START_NOTES"], "a") as file:
        print(json.dumps([point, time.time(), cpu, peak]), file=file)

def frames(read):
    def noted(*given, **named):
        for number, frame in enumerate(read(*given, **named)):
            if number == 0:
                note("first frame")
            yield frame
    return noted

def batch(encode):
    def noted(*given):
        made = encode(*given)
        note("first snippets encoded")
        time.sleep(600)  # until it is ended
        return made
    return noted

class Hook(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in ("actionspan.video.decode", "actionspan.features.extraction"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module
        def changed(module):
            run(module)
            if name.endswith("decode"):
                module.read_frames = frames(module.read_frames)
            else:
                module.TwoStream.batch = batch(module.TwoStream.batch)
        spec.loader.exec_module = changed
        return spec

import sys
sys.meta_path.insert(0, Hook())
"""


def start(words: list[str], source: Path, folder: Path) -> dict[str, list[float]]:
    """Return wall seconds, CPU seconds and peak MiB of each point of a start."""
    notes = folder / "notes"
    notes.write_text("")
    path = os.pathsep.join([str(folder), str(source.resolve())])
    environment = {**os.environ, "PYTHONPATH": path, "START_NOTES": str(notes)}
    command = [sys.executable, "-m", "actionspan", "propose", *words, "--out", str(folder / "out")]
    began = time.time()
    process = subprocess.Popen([*command, "--overwrite", "--quiet"], env=environment)
    while POINTS[1] not in notes.read_text():
        assert process.poll() is None, "the command ended before it encoded anything"
        time.sleep(0.01)
    process.kill()
    process.wait()
    found = [json.loads(line) for line in notes.read_text().splitlines()]
    return {point: [at - began, cpu, peak] for point, at, cpu, peak in found}


def main() -> None:
    """Print a table of both points."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("video")
    parser.add_argument("--old", type=Path, required=True, help="src of another version")
    parser.add_argument("--repeats", type=int, default=5)
    arguments, more = parser.parse_known_args()
    sources = arguments.old, Path(__file__).parents[1] / "src"
    made: list[list[dict[str, list[float]]]] = [[], []]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(HOOK)
        for repeat in range(1 + arguments.repeats):
            for runs, source in zip(made, sources, strict=True):
                run = start([arguments.video, *more], source, folder)
                if repeat:
                    runs.append(run)
    print("| until | | old | new | times as fast |")
    print("|---|---|---:|---:|---:|")
    for point in POINTS:
        for place, unit in enumerate(("wall s", "CPU s", "peak MiB")):
            old, new = ([run[point][place] for run in runs] for runs in made)
            digits = 0 if unit == "peak MiB" else 2
            cells = [
                f"{median(each):.{digits}f} ({min(each):.{digits}f}–{max(each):.{digits}f})"
                for each in (old, new, [a / b for a, b in zip(old, new, strict=True)])
            ]
            print(f"| {point} | {unit} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
