"""Count the memory and the operations of training a transformer, as in table 2 of paper 004."""

import math
from typing import TYPE_CHECKING

from actionspan_papers.experiments import Experiment, Row, Table, titled
from actionspan_papers.kinds import DataFrame, Flags
from actionspan_papers.sbp.published import COSTS, RECOGNITION

if TYPE_CHECKING:
    from actionspan_papers.sbp.swin import Shape

GIB = 2**30
_TITLES = titled(
    "attention; way; saved_gib: saved, GiB; saved_share: share; allocated_gib: allocated, GiB; "
    "allocated_share: share; teraflops: TFLOP; flops_share: share; published_gb: published, GB; "
    "published_share: share; published_seconds: published, s; published_seconds_share: share"
)
FORMS = {
    **dict.fromkeys(("saved_gib", "allocated_gib", "teraflops", "published_seconds_share"), ".2f"),
    **dict.fromkeys(("saved_share", "allocated_share", "flops_share", "published_share"), ".3f"),
}


def _rows(_: Flags) -> list[Row]:
    from actionspan_papers.sbp.swin import GRID, SHAPES

    return cost_rows(SHAPES["Swin-T"], GRID)


def cost_rows(shape: "Shape", grid: tuple[int, int, int]) -> list[Row]:
    """Return a row a form of attention and way to train.

    Products are of explicit attention; fused attention has as many in the forward pass, and
    runs the scores again in backward.

    Args:
        shape: Of the network.
        grid: Patches, of which windows of 8 × 7 × 7 are cut.
    """
    from actionspan_papers.sbp.swin import WAYS, count_step

    counts = {
        (fused, way.name): count_step(way, shape, grid, fused=fused)
        for fused in (False, True)
        for way in WAYS
    }
    first = WAYS[0].name
    most = COSTS["Swin-T", first]
    rows: list[Row] = []
    for (fused, way), count in counts.items():
        whole, products = counts[fused, first], counts[False, way].flops
        cost = COSTS.get(("Swin-T", way))
        printed = cost or RECOGNITION.get(("Swin-T", way))
        gigabytes = printed.gigabytes if printed else math.nan
        seconds = cost.seconds if cost else math.nan
        rows.append(
            {
                "attention": "fused" if fused else "explicit",
                "way": way,
                "saved_gib": count.saved / GIB,
                "saved_share": count.saved / whole.saved,
                "allocated_gib": count.allocated / GIB,
                "allocated_share": count.allocated / whole.allocated,
                "teraflops": products / 1e12,
                "flops_share": products / counts[False, first].flops,
                "published_gb": gigabytes,
                "published_share": gigabytes / most.gigabytes,
                "published_seconds": seconds,
                "published_seconds_share": seconds / most.seconds,
            }
        )
    return rows


def printed_ratio(keep_ratio: float, nodes: int, head: int) -> float:
    """Return equation (4): what of a layer's bytes SBP saves, as the paper counts them."""
    share = head / nodes
    return (4 * share + keep_ratio * (11 * share + 2)) / (15 * share + 2)


def counted_ratio(keep_ratio: float, nodes: int, head: int, *, fused: bool) -> float:
    """Return the same as our layers save it: input, its norm, keys and values of all nodes.

    The softmax's matrix is there once, and with fused attention not at all; what attention gives is
    saved too. Statistics of the norms are left out.
    """
    kept = 12 + (0 if fused else nodes / head)
    return (4 + keep_ratio * kept) / (4 + kept)


def _table(_: DataFrame, __: Flags) -> Table:
    from actionspan_papers.sbp.swin import HEAD, WINDOW

    nodes = WINDOW[0] * WINDOW[1] ** 2
    parts = (0.5, 0.25, 0.125)
    ratios = {
        "the printed equation (4)": [printed_ratio(r, nodes, HEAD) for r in parts],
        "counted with explicit attention": [
            counted_ratio(r, nodes, HEAD, fused=False) for r in parts
        ],
        "with fused attention": [counted_ratio(r, nodes, HEAD, fused=True) for r in parts],
    }
    one_layer = "; ".join(
        f"{name} {', '.join(f'{ratio:.3f}' for ratio in found)}" for name, found in ratios.items()
    )
    caption = [
        "Table 2: a step of training on 4 clips of 32 frames at 224 × 224 pixels with the windows, "
        "layers, widths and heads of Video Swin-T, float32. Counted without arithmetic: the most "
        "bytes saved for backward at one time, the most bytes of tensors alive at one time in "
        "forward and backward (gradients of weights included, weights and optimiser not), and "
        "products. SBP ¼ keeps 2 of 8 frames of a window in the first 8 of 12 layers, form "
        "`masked`; checkpointing runs every layer again; mixed precision is bfloat16 by the CPU's "
        "autocast, where the paper has Apex's O1 and no number but about 50 % more saved.",
        "Not modelled: patch embedding, classifier, shifts, relative positions, stochastic depth, "
        "losses of the allocator. Operations are counted for explicit attention. Published: one "
        "A100, `max_memory_allocated`; frame dropout from table 1.",
        f"Bytes of one SBP layer at n = {nodes}, d = {HEAD} and r = ½, ¼, ⅛, as parts of a plain "
        f"one's: {one_layer}.",
        "Ours saves all that the kept nodes need and runs nothing again. The paper's algorithm 1 "
        "saves the kept inputs of each operation alone and runs it again in backward, which would "
        "explain that its SBP stands between our SBP and our SBP + checkpointing. Checkpointing "
        "costs less than a third more: a layer that is run again stops at the last tensor needed.",
    ]
    return Table(caption=caption, titles=_TITLES)


EXPERIMENT = Experiment(rows=_rows, table=_table, forms=FORMS)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
