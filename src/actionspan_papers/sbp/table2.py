"""Count the memory and the operations of training a transformer, as in table 2 of paper 004."""

import argparse

from actionspan_papers.tables import add_outputs, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_outputs(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write a row a form of attention and way to train."""
    from actionspan_papers.sbp.swin import HEAD
    from actionspan_papers.sbp.table2_rows import WINDOW, cost_rows, counted_ratio, printed_ratio

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
        "what the allocator loses. Operations are those of explicit attention. Published: one "
        "A100, `max_memory_allocated`; frame dropout from table 1.",
        f"Bytes of one SBP layer at n = {nodes}, d = {HEAD} and r = ½, ¼, ⅛, as parts of a plain "
        f"one's: {one_layer}.",
        "Ours saves what the kept nodes need and runs nothing again. The paper's algorithm 1 saves "
        "the kept inputs of each operation alone and runs it again in backward, which would "
        "explain that its SBP stands between our SBP and our SBP + checkpointing. Checkpointing "
        "costs less than a third more: a layer that is run again stops at the last tensor needed.",
    ]
    titles = {
        "attention": "attention",
        "way": "way",
        "saved_gib": "saved, GiB",
        "saved_share": "share",
        "allocated_gib": "allocated, GiB",
        "allocated_share": "share",
        "teraflops": "TFLOP",
        "flops_share": "share",
        "published_gb": "published, GB",
        "published_share": "share",
        "published_seconds": "published, s",
        "published_seconds_share": "share",
    }
    write_table(arguments, cost_rows(), caption, "ll" + 10 * "r", titles)
