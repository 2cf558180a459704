"""Tables of experiments with numbers that a test chooses."""

from itertools import product

from actionspan_papers.experiments import frame_of
from actionspan_papers.partime.settings import variants
from papers.steps import row_of

SEEDS = (1, 2, 3, 4)
STAGES = (2, 4)


def wobble(seed: int) -> float:
    return 0.001 * (seed % 3)


def gradients(slow: float = 0.99, fast: float = 0.3, inputs: float = 0.98):
    """Two settings a stream: the first is slow; every stage has the same cosine."""
    columns = "stream setting speed stages gradients stage seed cosine"
    columns += " late_loss cpu_ms_a_step bytes kept_bytes"
    settings = (("slow", 0.001, slow), ("fast", 1.0, fast))
    rows = []
    for stream, (setting, speed, paper) in product(("random", "frames"), settings):
        for variant in variants(STAGES, last_only=False):
            own = stream, setting, speed, variant.stages, variant.mode
            cosine = 1.0 if variant.stages == 1 else paper
            cosine = inputs if variant.mode != "paper" else cosine
            costs = (2, 1024) if variant.mode == "paper" else (3, 2048)
            rows += [
                row_of(columns, *own, stage, seed, cosine - wobble(seed), 0.5, *costs, 0)
                for stage, seed in product(range(1, variant.stages + 1), SEEDS)
            ]
    return frame_of(rows)


def classification(accuracy):
    """`accuracy(window, stages, mode)`, the same in both orders."""
    columns = "stream window stages gradients changed_share learning_rate part seed accuracy"
    rows = []
    for order, window in product(("played", "shuffled"), (1, 64)):
        for variant in variants(STAGES, last_only=True):
            value = accuracy(window, variant.stages, variant.mode)
            own = order, window, variant.stages, variant.mode, 0.5, 0.001, "scored"
            rows += [
                row_of(columns, *own, seed, value + wobble(seed * variant.stages)) for seed in SEEDS
            ]
    return frame_of(rows)


def flow(loss):
    """`loss(stages, window)` in five windows; the late loss is that of the last."""
    columns = "stages gradients learning_rate difference_to_dis dis_length loss_without_flow"
    columns += " part seed seconds loss"
    rows = []
    for variant in variants(STAGES, last_only=False):
        if variant.mode == "stash":
            continue
        own = variant.stages, variant.mode, 0.001, 1, 2, 1
        rows.append(row_of(columns, *own, "choosing", 0, "", 1))
        for seed in SEEDS:
            values = [loss(variant.stages, window) + wobble(seed) for window in range(5)]
            windows = enumerate(values, start=1)
            rows += [row_of(columns, *own, "scored", seed, at, value) for at, value in windows]
            rows.append(row_of(columns, *own, "late", seed, "", values[-1]))
    return frame_of(rows)


def speeds(speedup, load: float = 1.0, **changed):
    """`speedup(side, work, executor)` of the plain network, three pairs each."""
    columns = "network R F work stages executor pair measured emulated bound slowest_stage_ms load"
    columns += " published_graph published_eager"
    cases = product((32, 128), (1, 10), ("inference", "learning"), ("thread", "process"), (1, 2, 3))
    rows = []
    for side, outputs, work, executor, pair in cases:
        own = "convolutions", side, outputs, work, 2, executor, pair
        measured = speedup(side, work, executor) + 0.01 * pair + 0.002 * outputs
        rows.append(row_of(columns, *own, measured, 1.9, 2, 10, load, "", "") | changed)
    return frame_of(rows)
