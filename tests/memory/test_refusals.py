"""Refusals, each in one line that says what would be right."""

import re
from typing import get_args

import pytest
import torch
from torch import nn

from actionspan.memory import StochasticBackward
from actionspan.memory.ways import Way, make_way
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from memory.encoders import EXECUTIONS, pictures, seeded, tiny, video

both = pytest.mark.parametrize("execution", EXECUTIONS)
THIRDS = [0.5, 0.5, 0.5]
OF_BATCH = "uses the statistics of a batch, but rows are run in pieces: freeze it .* or fold it"


def refused(message, call, *arguments, **how):
    with pytest.raises(ValueError, match=rf"^{message}[^\n]*\Z"):
        call(*arguments, **how)


OF_SBP = [
    ({"sampler": "strided"}, "sampler is 'strided'; it must be one of uniform_random, fixed, "),
    ({"keep_ratio": 0}, "keep_ratio is 0; it must be above 0 and at most 1"),
    ({"keep_ratio": 1.5}, "keep_ratio is 1.5"),
    ({"keep_ratio": [0.5, 0.2, 0.5]}, r"keep_ratio is \[0.5, 0.2, 0.5\]; a part may not keep"),
    ({"keep_ratio": [0.5, 0.5]}, "keep_ratio has 2 values for the 3 parts"),
    ({"keep_ratio": []}, "keep_ratio has 0 values for the 3 parts"),
    ({"keep_ratio": "auto"}, "keep_ratio is 'auto'; it must be a number"),
    ({"keep_ratio": None}, "keep_ratio is None; it must be a number"),
    ({"keep_ratio": torch.tensor(0.5)}, "keep_ratio is tensor.*; it must be a number"),
    ({"keep_ratio": [0.5, "a", 1]}, "keep_ratio is .*; it must be a number"),
    ({"gradient_weight": "odd"}, "gradient_weight is 'odd'; it must be one of paper, even, un"),
    ({"execution": "both"}, "execution is 'both'; it must be split or replay"),
    ({"piece": 0}, "piece is 0; it must be at least 1"),
    ({"piece": 1.5}, "piece is 1.5; it must be at least 1 row, a whole number"),
    *(
        ({"sampler": each, "execution": "split"}, f"sampler is '{each}', which needs execution re")
        for each in ("importance", "diverse_gradient")
    ),
]
CANNOT_USE = [("frame_dropout", "diverse_feature"), ("bank", "diverse_feature")]
CANNOT_USE += [("bank", "importance"), ("sbp_checkpoint", "diverse_gradient")]
OF_WAYS = [
    ("dropout", {}, "way is 'dropout'; it must be one of sbp, full"),
    ("checkpoint", {"piece": 0}, "piece is 0"),
    ("frame_dropout", {"keep_ratio": THIRDS}, "keep_ratio is .* frame_dropout takes one number"),
    *(
        (way, {"sampler": each}, f"sampler is '{each}', which the way {way} cannot use")
        for way, each in CANNOT_USE
    ),
]


@pytest.mark.parametrize(("way", "how", "message"), [*(("sbp", *row) for row in OF_SBP), *OF_WAYS])
def test_settings_that_a_way_does_not_take(way, how, message):
    refused(message, make_way, way, tiny(), **how)


class Residual(nn.Sequential):
    """Does more than its parts."""

    def forward(self, frames):
        return frames + super().forward(frames)


@both
def test_a_list_of_ratios_is_for_a_sequence_that_does_no_more_than_its_parts(execution):
    only = "keep_ratio is a list, which is for an nn.Sequential"
    make = StochasticBackward
    refused(f"{only}, not Linear", make, nn.Linear(5, 3), [0.5], execution=execution)
    refused(f"{only}, not Residual", make, Residual(*tiny()), THIRDS, execution=execution)
    for name in ("forward_hook", "forward_pre_hook", "full_backward_hook"):
        encoder = tiny()
        spatial = make(encoder, THIRDS, execution=execution)
        hook = getattr(encoder, f"register_{name}")(lambda *_: None)
        refused(f"{only} without hooks: ", make, encoder, THIRDS, execution=execution)
        with pytest.raises(ValueError, match=f"^{only} without hooks: "):  # a hook of later
            spatial(video(7), generator=seeded()).sum().backward()
        hook.remove()
        spatial(video(7), generator=seeded()).sum().backward()


class Pair(nn.Linear):
    def forward(self, frames):
        return super().forward(frames), frames


@pytest.mark.parametrize("way", get_args(Way))
def test_an_encoder_that_does_not_give_a_feature_a_row(way):
    pair = make_way(way, Pair(5, 3), 0.5)
    refused("the encoder gave a tuple, not a tensor", pair, video(9).float())
    flat = make_way(way, nn.Sequential(nn.Linear(5, 4), nn.Flatten(0)), 0.5)
    refused(r"the encoder gave features of shape \(\d+,\) for \d rows", flat, video(4).float())


@both
@pytest.mark.parametrize("ratio", [0.5, 1])
def test_batch_norm_in_training_mode(execution, ratio):
    encoder = EfficientNetLite0(classes=4)
    spatial = StochasticBackward(encoder, ratio, execution=execution)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    others = ("frozen", "frame_dropout", "checkpoint", "bank", "sbp_checkpoint")
    for module in (spatial, *(make_way(way, encoder) for way in others)):
        refused(f"the encoder's norm '_bn0' {OF_BATCH}", module, pictures(4))
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    encoder.eval()
    spatial(pictures(4)).sum().backward()
    after = {name: value for name, value in encoder.state_dict().items() if "running" in name}
    assert all(torch.equal(before[name], value) for name, value in after.items())
    encoder.get_submodule("_blocks.2._bn1").train()  # one of many, deep inside
    refused("the encoder's norm '_blocks.2._bn1'", spatial, pictures(4))


@pytest.mark.parametrize(
    ("norm", "trains"),
    [
        (nn.BatchNorm1d(3, track_running_stats=False), False),
        (nn.SyncBatchNorm(3), True),
        (nn.InstanceNorm1d(3, track_running_stats=True), True),
    ],
)
def test_norms_of_other_kinds_that_look_at_a_batch_or_collect_from_it(norm, trains):
    encoder = nn.Sequential(nn.Linear(5, 3), norm.train(trains))
    refused("the encoder's norm '1'", StochasticBackward(encoder), video(4).float())


@pytest.mark.parametrize("norm", [nn.LayerNorm(3), nn.GroupNorm(1, 3), nn.InstanceNorm1d(3)])
def test_norms_of_single_rows_are_fine(norm):
    encoder = nn.Sequential(nn.Linear(5, 3), nn.Unflatten(1, (3, 1)), nn.Linear(1, 2))
    encoder = encoder if isinstance(norm, nn.LayerNorm) else encoder.append(norm)
    StochasticBackward(encoder)(video(4).float()).sum().backward()


@both
@pytest.mark.parametrize("keep_ratio", [0.5, 1.0])
@pytest.mark.parametrize("learns", [True, False])
def test_rows_of_a_shape_that_the_encoder_does_not_take(execution, keep_ratio, learns):
    encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()).requires_grad_(learns)
    spatial = StochasticBackward(encoder, keep_ratio, execution=execution)
    of_torch = re.escape("1, 8, 8): Given groups=1, weight of size [4, 3, 3, 3]")
    line = rf"the encoder does not take rows of shape \(\d, {of_torch}"
    refused(line, spatial, torch.zeros(6, 1, 8, 8))


def test_an_error_that_is_not_of_the_shape_is_raised_as_it_is():
    class Full(nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        StochasticBackward(Full())(torch.zeros(2, 3))
