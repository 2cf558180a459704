"""Change one line of the core at a time, and count which tier of the tests notices.

python benchmarks/mutations.py --out build/mutations.md
python benchmarks/mutations.py --only ring --both

Each of the mutations below is made in a copy of the repository. Its tests, the files named beside
it, run as `make test` runs them (`-m "not full"`). Those that survive, or with `--both` all of
them, meet the second tier too: whatever these folders have. A test that hangs has noticed.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import cv2  # noqa: F401
import h5py  # noqa: F401
import pytest
import scipy.optimize
import scipy.special  # noqa: F401
import torch  # noqa: F401

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/actionspan")
SECONDS = 1200  # after which the tests hang


class Mutation(NamedTuple):
    """One changed line."""

    subject: str
    tests: tuple[str, ...]
    old: str
    """A part of a line that no other line of the package has."""
    new: str


def _table() -> Iterator[Mutation]:
    for subject, tests, pairs in TABLE:
        for old, new in pairs:
            yield Mutation(subject, tests, old, new)


TABLE: Sequence[tuple[str, tuple[str, ...], Sequence[tuple[str, str]]]] = (
    (
        "ring",
        ("tests/parallel", "tests/mpi/test_allreduce.py"),
        (
            (
                "[length * i // blocks for i in range(blocks + 1)]",
                "[length // blocks * i for i in range(blocks)] + [length - 1]",
            ),
            (
                "yield Round((rank - i) % size, (rank + 1) % size, (rank - i - 1) % size,",
                "yield Round((rank - i) % size, (rank + 1) % size, (rank - i) % size,",
            ),
            (
                "yield Round((rank - i + 1) % size, (rank + 1) % size, (rank - i) % size,",
                "yield Round((rank - i) % size, (rank + 1) % size, (rank - i - 1) % size,",
            ),
            ("blocks.round_to_wire(block((rank + 1) % size))", "blocks.round_to_wire(block(rank))"),
            ("direct = not add and self.wire == into.dtype", "direct = self.wire == into.dtype"),
            (
                "wide = torch.float64 if flat.dtype == torch.float64 else torch.float32",
                "wide = flat.dtype",
            ),
        ),
    ),
    (
        "servers",
        ("tests/mpi/test_allreduce.py", "tests/parallel", "tests/mpi/test_replica.py"),
        (
            ("torch.add(slots[0], slots[1], out=own)", "torch.add(slots[1], slots[1], out=own)"),
            ('first = self.placement == "own_rank" and worker == 1', "first = worker == 1"),
            ("slots[self.rank].copy_(own)", "slots[self.rank].zero_()"),
            (
                "yield Round(rank, (rank + j) % size, (rank - j) % size, (rank - j) % size)",
                "yield Round(rank, (rank + j) % size, (rank + j) % size, (rank - j) % size)",
            ),
            (
                "self._version + 1 - oldest <= self.settings.staleness",
                "self._version - oldest <= self.settings.staleness",
            ),
            ("for gradient in gradients[1:]:", "for gradient in gradients[2:]:"),
            (
                "self._version - version for version, gradient in held",
                "self._version for version, gradient in held",
            ),
        ),
    ),
    (
        "averaging and buckets",
        ("tests/parallel", "tests/mpi/test_model_averaging.py", "tests/mpi/test_replica.py"),
        (
            ("flat /= count", "flat /= count + 1"),
            ("variance.double() + (mean.double() - common) ** 2", "variance.double()"),
            (
                "total += tensors[(block + further) % size][begin:end]",
                "total += tensors[(block - further) % size][begin:end]",
            ),
            ("anywhere = complete or float(bucket.counts[place]) > 0", "anywhere = complete"),
            ("+ parameter.nbytes <= bucket_bytes:", "<= bucket_bytes:"),
            ("bucket.counts[place] = 0", "bucket.counts[place] = 1"),
        ),
    ),
    (
        "PARTIME",
        (
            "tests/streaming/test_exactness.py",
            "tests/streaming/test_balance.py",
            "tests/streaming/test_pipeline.py",
            "tests/streaming/test_executors.py",
        ),
        (
            ("return 2 * (self.stages - 1 - self.index)", "return 2 * (self.stages - self.index)"),
            ('return stages if gradients == "paper" else 2 * (stages - 1)', "return stages"),
            ("self._kept[0].step == step - self._delay", "self._kept[0].step == step - 1"),
            ("parameter.grad = self._used[name].grad", "parameter.grad = None"),
            (
                "slowest = max(best[cut], stage_seconds(costs, cut, last))",
                "slowest = best[cut] + stage_seconds(costs, cut, last)",
            ),
            ("return ways * (moved + self.hop_seconds) / 2", "return ways * moved / 2"),
        ),
    ),
    (
        "SBP",
        (
            "tests/memory/test_sampling.py",
            "tests/memory/test_estimator.py",
            "tests/memory/test_exactness.py",
        ),
        (
            (
                "return min(count, max(1, math.floor(keep_ratio * count + 0.5)))",
                "return min(count, max(1, math.floor(keep_ratio * count)))",
            ),
            ("return kept.weights * (len(kept.rows) / count)", "return kept.weights"),
            (
                "edges = torch.arange(kept + 1) * count // kept",
                "edges = torch.arange(kept + 1) * (count // kept)",
            ),
            (
                "return Rows(rows, 1 / probabilities[rows])",
                "return Rows(rows, probabilities[rows])",
            ),
            (
                "values[sure:] = falling[sure:] * (left[sure] / rest[sure])",
                "values[sure:] = falling[sure:] * (left[0] / rest[0])",
            ),
            (
                "return self.weights[torch.searchsorted(self.rows, rows)]",
                "return self.weights[: len(rows)]",
            ),
            ("return weighted(gradient, weights), None", "return gradient, None"),
        ),
    ),
    (
        "decoding",
        ("tests/video/test_decode.py", "tests/video/test_snippets.py", "tests/features"),
        (
            (
                "seconds = (ordered - ordered[0]) * tick if stamped",
                "seconds = ordered * tick if stamped",
            ),
            ("np.rot90(rgb, round(frame.rotation / 90))", "np.rot90(rgb, 0)"),
            ("continuous=seekable and trimmed == 0 and headless == 0,", "continuous=seekable,"),
            (
                "stamped = missing == 0 and bool((np.diff(ordered) > 0).all())",
                "stamped = missing == 0",
            ),
            (
                "window = range(centre - before, centre - before + stack + 1)",
                "window = range(centre - before, centre - before + stack)",
            ),
            ("if steps - (starts[-1] + window) > rest:", "if steps - starts[-1] > rest:"),
        ),
    ),
    (
        "density",
        (
            "tests/proposals/test_selection.py",
            "tests/proposals/test_density_cells.py",
            "tests/proposals/test_density.py",
        ),
        (
            (
                "reached = (tiou - np.float32(0.475)) / np.float32(0.5)",
                "reached = (tiou - np.float32(0.5)) / np.float32(0.5)",
            ),
            ("np.maximum(covered, reached[place], out=covered)", "covered += reached[place]"),
            (
                "starts = np.linspace(0, steps - length, places)",
                "starts = np.linspace(0, steps, places)",
            ),
            ("= shared > overlap * shorter", "= shared > overlap"),
            ("free[found[place]] = False", "pass"),
            ("scores[:-1][falling[1:] == falling[:-1]] = -1", "scores[:-1] += 0"),
        ),
    ),
    (
        "suppression and candidates",
        (
            "tests/proposals/test_suppression.py",
            "tests/proposals/test_pgm.py",
        ),
        (
            (
                "flat[near] *= np.exp(-(flat_iou[near] ** 2) / settings.epsilon)",
                "flat[near] *= np.exp(-flat_iou[near] / settings.epsilon)",
            ),
            (
                "near = np.flatnonzero(iou > least.take(at)[:, None])",
                "near = np.flatnonzero(iou > least[0])",
            ),
            ("hull -= np.minimum(start, other_start)", "hull -= start"),
            (
                "(inner > values[..., :-2]) & (inner > values[..., 2:])",
                "(inner >= values[..., :-2]) & (inner > values[..., 2:])",
            ),
            (
                "places = first + top + 0.5 + (around[2] - around[0]) / around.sum(axis=0)",
                "places = first + top + 0.5",
            ),
        ),
    ),
    (
        "scores",
        (
            "tests/evaluation/test_scoring.py",
            "tests/evaluation/test_recall.py",
            "tests/evaluation/test_precision.py",
        ),
        (
            (
                "overlap = np.maximum(end - start + unit, 0.0)",
                "overlap = np.maximum(end - start, 0.0)",
            ),
            ("values = tious[near, ::-1]", "values = tious[near]"),
            ("free[levels, :, instance] = False", "pass"),
            ("envelope = np.maximum.accumulate(precision[::-1])", "envelope = precision[::-1]"),
            (
                "return float(envelope.sum()) / instances",
                "return float(envelope.sum()) / max(len(ranks), 1)",
            ),
            (
                "found += (self.best_tiou[rows] >= self.thresholds[:, None, None]).sum(axis=1)",
                "found += (self.best_tiou[rows] > self.thresholds[:, None, None]).sum(axis=1)",
            ),
        ),
    ),
    (
        "matching and forms",
        ("tests/dataset/test_matching.py", "tests/annotations/formats"),
        (
            ("end = min(end, duration) if duration else end", "end = end"),
            (
                "return Instance(start=max(start, 0.0), end=end, label=label, **raw.details)",
                "return Instance(start=start, end=end, label=label, **raw.details)",
            ),
            (
                "return to_number(hours * 3600 + minutes * 60 + rest)",
                "return to_number(hours * 3600 + minutes * 60)",
            ),
            ("if start == end and not may_be_empty:", "if False:"),
            (
                "start, end = ((value or 0.0) / 1000 + offset for value in milliseconds)",
                "start, end = ((value or 0.0) / 1000 for value in milliseconds)",
            ),
            ('elif kind == "STOP" and key in begun:', 'elif kind == "STOP":'),
        ),
    ),
    (
        "temporal network",
        (
            "tests/temporal/test_loss.py",
            "tests/temporal/test_labels.py",
            "tests/temporal/test_augmentation.py",
        ),
        (
            ("return ratio / 2, ratio / 2 / (ratio - 1)", "return ratio / 2, ratio / 2"),
            (
                "= (overlaps > 0.5 + _ROUNDING).astype(np.float32)",
                "= (overlaps > 0.5 - _ROUNDING).astype(np.float32)",
            ),
            ("targets[:, PART] = part", "targets[:, PART] = 0"),
            ("played = targets[places.round().long()]", "played = targets[places.long()]"),
        ),
    ),
)


def apply(mutation: Mutation, tree: Path) -> tuple[Path, str]:
    """Change the line; return its file and what that held.

    Raises:
        LookupError: No line has the text, or more than one.
    """
    places = []
    for path in sorted((tree / SOURCE).rglob("*.py")):
        text = path.read_text()
        places += [path] * text.count(mutation.old)
    if len(places) != 1:
        raise LookupError(f"{len(places)} lines have: {mutation.old}")
    before = places[0].read_text()
    places[0].write_text(before.replace(mutation.old, mutation.new))
    return places[0], before


def caught(tree: Path, tests: Sequence[str], tier: str) -> tuple[bool, float, str]:
    """Run tests until one fails; return whether one did, the seconds and the failure's line."""
    begun = time.perf_counter()
    log = tree.with_name("log")
    words = ["-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", tier, *tests]
    process = multiprocessing.get_context("fork").Process(target=_pytest, args=(tree, log, words))
    process.start()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
        return True, time.perf_counter() - begun, "it hangs"
    lines = log.read_text().splitlines()
    if process.exitcode not in (0, 1, 2, 5):  # 2: a file that cannot be imported; 5: no test
        raise RuntimeError("\n".join(lines[-50:]))
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    noticed = process.exitcode in (1, 2)
    return noticed, time.perf_counter() - begun, failed[0].split(" - ")[0] if failed else ""


def _pytest(tree: Path, log: Path, words: list[str]) -> None:
    """Run pytest in a process that has the heavy libraries already."""
    file = log.open("w")
    for number in (1, 2):
        os.dup2(file.fileno(), number)
    os.chdir(tree)
    here = [str(tree / "src"), str(tree / "tests")]
    os.environ |= {"PYTHONPATH": os.pathsep.join(here), "OMP_NUM_THREADS": "1"}
    sys.path[:0] = here
    sys.dont_write_bytecode = True  # a line may change and the time and size of its file stay
    os._exit(int(pytest.main(words)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutations and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="the table; default: only printed")
    parser.add_argument("--only", help="the mutations of one subject")
    parser.add_argument("--both", action="store_true", help="run the second tier for all")
    parser.add_argument("--check", action="store_true", help="only look the lines up")
    given = parser.parse_args(arguments)
    chosen = [one for one in _table() if given.only in (None, one.subject)]
    lines = [
        "| subject | line | becomes | `make test` | the rest | by |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".*", "build", "results", "__pycache__")
        shutil.copytree(ROOT, tree, ignore=ignored)
        for mutation in chosen:
            path, before = apply(mutation, tree)
            try:
                row = [] if given.check else _judge(mutation, tree, both=given.both)
            finally:
                path.write_text(before)
            cells = [mutation.subject, f"`{mutation.old}`", f"`{mutation.new}`", *row]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            print(lines[-1], flush=True)
            if given.out:
                given.out.parent.mkdir(parents=True, exist_ok=True)
                given.out.write_text("\n".join(lines) + "\n")
    return 0


def _judge(mutation: Mutation, tree: Path, *, both: bool) -> list[str]:
    first, seconds, by = caught(tree, mutation.tests, "not full")
    row = [f"{'caught' if first else 'survived'} in {seconds:.0f} s"]
    if first and not both:
        return [*row, "", by]
    folders = sorted({"/".join(name.split("/")[:2]) for name in mutation.tests})
    second, seconds, also = caught(tree, folders, "full")
    return [*row, f"{'caught' if second else 'survived'} in {seconds:.0f} s", by or also]


if __name__ == "__main__":
    sys.exit(main())
