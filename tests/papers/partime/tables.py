"""Tables of experiments with numbers that a test chooses."""

from actionspan_papers.partime.settings import variants

SEEDS = (1, 2, 3, 4)
STAGES = (2, 4)


def wobble(seed: int) -> float:
    return 0.001 * (seed % 3)


def gradients(slow: float = 0.99, fast: float = 0.3, inputs: float = 0.98):
    """Two settings a stream: the first is slow; every stage has the same cosine."""
    rows = []
    for stream in ("random", "frames"):
        for setting, speed, paper in (("slow", 0.001, slow), ("fast", 1.0, fast)):
            for variant in variants(STAGES, last_only=False):
                cosine = 1.0 if variant.stages == 1 else paper
                cosine = inputs if variant.mode != "paper" else cosine
                for stage in range(1, variant.stages + 1):
                    rows += [
                        {
                            "stream": stream,
                            "setting": setting,
                            "speed": str(speed),
                            "stages": str(variant.stages),
                            "gradients": variant.mode,
                            "stage": str(stage),
                            "seed": str(seed),
                            "cosine": str(cosine - wobble(seed)),
                            "late_loss": "0.5",
                            "cpu_ms_a_step": "2" if variant.mode == "paper" else "3",
                            "bytes": "1024" if variant.mode == "paper" else "2048",
                            "kept_bytes": "0",
                        }
                        for seed in SEEDS
                    ]
    return rows


def classification(accuracy):
    """`accuracy(window, stages, mode)`, the same in both orders."""
    rows = []
    for order in ("played", "shuffled"):
        for window in (1, 64):
            for variant in variants(STAGES, last_only=True):
                value = accuracy(window, variant.stages, variant.mode)
                rows += [
                    {
                        "stream": order,
                        "window": str(window),
                        "stages": str(variant.stages),
                        "gradients": variant.mode,
                        "changed_share": "0.5",
                        "learning_rate": "0.001",
                        "part": "scored",
                        "seed": str(seed),
                        "accuracy": str(value + wobble(seed * variant.stages)),
                    }
                    for seed in SEEDS
                ]
    return rows


def flow(loss):
    """`loss(stages, window)` in five windows; the late loss is that of the last."""
    rows = []
    for variant in variants(STAGES, last_only=False):
        if variant.mode == "stash":
            continue
        named = {"stages": str(variant.stages), "gradients": variant.mode}
        named |= {"learning_rate": "0.001", "difference_to_dis": "1", "dis_length": "2"}
        still = {"loss_without_flow": "1"}
        rows.append({**named, **still, "part": "choosing", "seed": "0", "seconds": "", "loss": "1"})
        for seed in SEEDS:
            values = [loss(variant.stages, window) + wobble(seed) for window in range(5)]
            own = {**named, **still, "seed": str(seed)}
            rows += [
                {**own, "part": "scored", "seconds": str(window + 1), "loss": str(value)}
                for window, value in enumerate(values)
            ]
            rows.append({**own, "part": "late", "seconds": "", "loss": str(values[-1])})
    return rows


def speeds(speedup, load: float = 1.0):
    """`speedup(side, work, executor)` of the plain network, three pairs each."""
    return [
        {
            "network": "convolutions",
            "R": str(side),
            "F": str(outputs),
            "work": work,
            "stages": "2",
            "executor": executor,
            "pair": str(pair),
            "measured": str(speedup(side, work, executor) + 0.01 * pair + 0.002 * outputs),
            "emulated": "1.9",
            "bound": "2",
            "slowest_stage_ms": "10",
            "load": str(load),
            "published_graph": "",
            "published_eager": "",
        }
        for side in (32, 128)
        for outputs in (1, 10)
        for work in ("inference", "learning")
        for executor in ("thread", "process")
        for pair in (1, 2, 3)
    ]
