"""The transformer of Swin-T's shape: windows, merging, and what a step of training needs."""

import contextlib
import math

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from actionspan.memory.counting import saved_bytes
from actionspan_papers.experiments import frame_of
from actionspan_papers.sbp.swin import SHAPES, WAYS, Shape, SwinShape, make_step
from actionspan_papers.sbp.table1 import table1_rows
from actionspan_papers.sbp.table2 import cost_rows, counted_ratio, printed_ratio
from actionspan_papers.sbp.transformer import TransformerEncoder

GRID = (16, 14, 14)  # patches; the second stage has one window in a picture


def make(layers=(2, 2), top=1, **options):
    torch.manual_seed(0)
    return SwinShape(Shape(32, layers, top), **options)


def test_nodes_are_seen_inside_their_windows_alone():
    network, nodes = make((1,), top=0), torch.randn(1, *GRID, 32)
    changed = nodes.clone()
    changed[0, 9, 8, 1] += torch.randn(32)  # second window in time, second row, first column
    different = (network(changed) != network(nodes)).any(dim=4)[0]
    inside = torch.zeros(GRID, dtype=torch.bool)
    inside[8:, 7:, :7] = True
    assert torch.equal(different, inside)


@pytest.mark.parametrize("checkpointed", [False, True])
def test_dropped_frames_are_seen_and_get_no_gradient(checkpointed):
    nodes = torch.randn(1, *GRID, 32, requires_grad=True)
    network = make(checkpointed=checkpointed)
    output = network(nodes, torch.tensor([1, 6]))
    torch.testing.assert_close(output, network(nodes), rtol=1e-4, atol=1e-5)
    output.square().sum().backward()
    kept = (nodes.grad != 0).any(dim=(0, 2, 3, 4)).nonzero().flatten()
    assert kept.tolist() == [1, 6, 9, 14]  # the same in both windows


def test_a_checkpointed_network_has_the_same_gradients_and_saves_inputs_until_it_runs_again():
    nodes = torch.randn(1, *GRID, 32, requires_grad=True)
    found = []
    for network in (make(), make(checkpointed=True)):
        loss = network(nodes, torch.tensor([1, 6])).square().sum()
        found.append(torch.autograd.grad(loss, [nodes, *network.parameters()]))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    network = make((6,), top=2, checkpointed=True)
    with saved_bytes(network) as counted:
        output = network(nodes, torch.tensor([1, 6]))
        forward = counted.live
        output.sum().backward()
    unit = nodes.nbytes
    assert 6 * unit <= forward < 6.1 * unit
    assert counted.total > forward + 10 * unit  # a top layer, which is run again whole


@pytest.mark.parametrize("fused", [False, True])
def test_a_layer_saves_only_what_it_needs_and_the_formulas_are_those_of_its_bytes(fused):
    # of all nodes: the input, its norm, keys and values; of kept ones: the query, what it sees,
    # the sum, its norm, twice four times the width inside the dense layers; explicit attention one
    # row of an n × n matrix, after the softmax
    n, d = 392, 32
    layer, x = TransformerEncoder(3 * d, 3, 1, top=0, fused=fused), torch.zeros(1, n, 3 * d)
    each, units = 12 + (0 if fused else 1 * n / d), {}
    small = 0.32  # the rows, means and deviations of the norms, sums of exponentials
    for ratio in (1.0, 0.5, 0.25, 0.125):
        rows = None if ratio == 1 else torch.arange(int(n * ratio)) * int(1 / ratio)
        with saved_bytes(layer) as counted:
            output = layer(x.requires_grad_(), rows)
            del output
        units[ratio] = counted.total / x.nbytes
        assert 4 + each * ratio <= units[ratio] < 4 + each * ratio + small
    formula = counted_ratio(0.25, n, d, fused=fused)
    assert units[0.25] / units[1.0] == pytest.approx(formula, rel=0.02)
    assert printed_ratio(0.25, n, d) == pytest.approx(0.326, abs=0.0005)


@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_a_forward_pass_is_on_one_device(way):
    """Fake tensors of CUDA refuse rows that lie on the CPU; backward takes a GPU itself."""
    with FakeTensorMode():
        network, step = make_step(way, Shape(32, (1, 1), 1), GRID, fused=False, device="cuda")
        assert {each.device.type for each in network.parameters()} == {"cuda"}
        outputs = []
        network.register_forward_hook(lambda *given: outputs.append(given[-1]))
        with contextlib.suppress(RuntimeError):  # of the backward pass
            step()
    frames = 4 if way.frames_dropped else 16
    assert outputs[0].shape == (4, frames, 7, 7, 64)
    assert outputs[0].device.type == "cuda"


def test_every_way_needs_less_than_end_to_end_training():
    rows = cost_rows(Shape(96, (2, 1), 1), grid=(16, 14, 14))
    assert len(rows) == 2 * 6
    for attention in ("explicit", "fused"):
        share, flops = (
            {row["way"]: float(row[column]) for row in rows if row["attention"] == attention}
            for column in ("saved_share", "flops_share")
        )
        assert share["end-to-end"] == flops["end-to-end"] == 1
        assert share["SBP + checkpointing"] < share["checkpointing"] < 0.7
        assert share["SBP + checkpointing"] < share["SBP"] < 1
        # half of it, and the inputs and norms that stay float32
        assert 0.5 * share["SBP"] < share["SBP + mixed precision"] < 0.7 * share["SBP"]
        assert flops["SBP"] < 1 < flops["checkpointing"]
        assert flops["checkpointing"] == pytest.approx(4 / 3, abs=0.1)
        assert flops["SBP + checkpointing"] == pytest.approx(flops["SBP"] + 1 / 3, abs=0.1)
    saved = {(row["attention"], row["way"]): float(row["saved_gib"]) for row in rows}
    assert saved["fused", "end-to-end"] < 0.7 * saved["explicit", "end-to-end"]


def test_table1_counts_both_networks_and_takes_the_accuracy_of_ours():
    ways = ("end-to-end", "frame dropout", "SBP, frame-wise", "SBP, checkerboard")
    numbers = {"top1": "58.30", "top1_low": "50.00", "top1_high": "66.00", "saved_share": "0.500"}
    rows = table1_rows(frame_of([{"way": way, **numbers} for way in ways]))
    assert [(row["network"], row["way"]) for row in rows] == [
        (network, way)
        for network in ("Swin-T", "Swin-B", "small transformer")
        for way in ("end-to-end", "frame dropout", "SBP")
    ]
    whole, dropout, sbp = rows[3:6]
    assert [row["published_gb"] for row in rows[3:6]] == [32.5, 6.3, 8.6]
    assert whole["saved_share"] == whole["published_share"] == 1
    # a quarter of the nodes, in windows of half as many frames: 16 + n / d parts of each
    fewer = 0.25 * (16 + 196 / 32) / (16 + 392 / 32)
    assert float(dropout["saved_share"]) == pytest.approx(fewer, abs=0.003)
    assert float(dropout["saved_share"]) < float(sbp["saved_share"]) < 1
    # a layer keeps, of n nodes and d numbers a head, (12 + n / d) r + 4 parts, or all 16 + n / d,
    # each of windows × n × width; Swin-B has 18 of 24 layers that sample
    stages = [(4 ** (3 - stage) * 2**stage, count) for stage, count in enumerate((2, 2, 18, 2))]
    weights = [weight for weight, count in stages for _ in range(count)]
    kept = sum(weights[:18]) * counted_ratio(0.25, 392, 32, fused=False) + sum(weights[18:])
    assert float(sbp["saved_share"]) == pytest.approx(kept / sum(weights), abs=0.02)
    assert SHAPES["Swin-B"].top == 6
    assert (str(rows[6]["top1"]), rows[6]["saved_share"]) == ("58.30 [50.00, 66.00]", 0.5)
    assert math.isnan(rows[6]["published_gb"])
