"""What is refused, in one line that says what would be right."""

import pytest
import torch
from torch import nn

from actionspan.memory import StochasticBackward
from actionspan.memory.ways import make_way
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from memory.encoders import pictures, tiny, video


def refused(message, call):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"sampler": "strided"},
            "^sampler is 'strided'; it must be one of uniform_random, fixed, ",
        ),
        ({"keep_ratio": 0}, "^keep_ratio is 0; it must be above 0 and at most 1"),
        ({"keep_ratio": 1.5}, "^keep_ratio is 1.5"),
        ({"keep_ratio": [0.5, 0.2, 0.5]}, r"^keep_ratio is \[0.5, 0.2, 0.5\]; a part may not keep"),
        ({"keep_ratio": [0.5, 0.5]}, "^keep_ratio has 2 values for the 3 parts"),
        (
            {"gradient_weight": "odd"},
            "^gradient_weight is 'odd'; it must be one of paper, even, un",
        ),
        ({"execution": "both"}, "^execution is 'both'; it must be split or replay"),
        ({"piece": 0}, "^piece is 0; it must be at least 1"),
        ({"piece": 1.5}, "^piece is 1.5; it must be at least 1 row, a whole number"),
        ({"keep_ratio": []}, "^keep_ratio has 0 values for the 3 parts"),
        ({"keep_ratio": "auto"}, "^keep_ratio is 'auto'; it must be a number"),
        ({"keep_ratio": None}, "^keep_ratio is None; it must be a number"),
        ({"keep_ratio": torch.tensor(0.5)}, "^keep_ratio is tensor.*; it must be a number"),
        ({"keep_ratio": [0.5, "a", 1]}, "^keep_ratio is .*; it must be a number"),
        (
            {"sampler": "importance", "execution": "split"},
            "^sampler is 'importance', which needs execution replay, not split",
        ),
        (
            {"sampler": "diverse_gradient", "execution": "split"},
            "^sampler is 'diverse_gradient', which needs execution replay",
        ),
    ],
)
def test_values(how, message):
    refused(message, lambda: StochasticBackward(tiny(), **how))
    refused(message, lambda: make_way("sbp", tiny(), **how))


def test_a_list_of_ratios_is_for_a_sequence_of_parts():
    refused(
        "^keep_ratio is a list, which is for an nn.Sequential, not Linear",
        lambda: StochasticBackward(nn.Linear(5, 3), [0.5]),
    )
    refused(
        "^keep_ratio is .* frame_dropout takes one number",
        lambda: make_way("frame_dropout", tiny(), [0.5, 0.5, 0.5]),
    )


def test_ways():
    refused("^way is 'dropout'; it must be one of sbp, full", lambda: make_way("dropout", tiny()))
    refused("^piece is 0", lambda: make_way("checkpoint", tiny(), piece=0))
    for way, sampler in (
        ("frame_dropout", "diverse_feature"),
        ("bank", "diverse_feature"),
        ("bank", "importance"),
        ("sbp_checkpoint", "diverse_gradient"),
    ):
        refused(
            f"^sampler is '{sampler}', which the way {way} cannot use",
            lambda way=way, sampler=sampler: make_way(way, tiny(), sampler=sampler),
        )


@pytest.mark.parametrize("execution", ["split", "replay"])
def test_a_video_without_rows(execution):
    refused(
        "^the video has 0 rows; at least 1 is needed",
        lambda: StochasticBackward(tiny(), execution=execution)(video(0)),
    )


@pytest.mark.parametrize("execution", ["split", "replay"])
def test_an_encoder_that_does_not_give_a_feature_a_row(execution):
    encoder = nn.Sequential(nn.Linear(5, 4), nn.Flatten(0))
    refused(
        r"^the encoder gave features of shape \(\d+,\) for \d rows",
        lambda: StochasticBackward(encoder, 0.5, execution=execution)(video(4).float()),
    )


class Pair(nn.Linear):
    def forward(self, frames):
        return super().forward(frames), frames


@pytest.mark.parametrize("way", ["sbp", "full", "bank", "checkpoint", "frame_dropout", "frozen"])
def test_an_encoder_that_gives_several_tensors(way):
    module = make_way(way, Pair(5, 3), 0.5)
    refused("^the encoder gave a tuple, not a tensor", lambda: module(video(9).float()))


@pytest.mark.parametrize("execution", ["split", "replay"])
@pytest.mark.parametrize("ratio", [0.5, 1])
def test_batch_norm_in_training_mode(execution, ratio):
    encoder = EfficientNetLite0(classes=4)
    spatial = StochasticBackward(encoder, ratio, execution=execution)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    message = (
        "^the encoder's norm '_bn0' uses the statistics of a batch, .* freeze it .* or fold it"
    )
    refused(message, lambda: spatial(pictures(4)))
    for way in ("frozen", "frame_dropout", "checkpoint", "bank", "sbp_checkpoint"):
        refused(message, lambda way=way: make_way(way, encoder)(pictures(4)))
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    encoder.eval()
    spatial(pictures(4)).sum().backward()
    after = {name: value for name, value in encoder.state_dict().items() if "running" in name}
    assert all(torch.equal(before[name], value) for name, value in after.items())
    encoder.get_submodule("_blocks.2._bn1").train()  # one of many, deep inside
    refused("norm '_blocks.2._bn1'", lambda: spatial(pictures(4)))


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
    refused("^the encoder's norm '1'", lambda: StochasticBackward(encoder)(video(4).float()))


@pytest.mark.parametrize("norm", [nn.LayerNorm(3), nn.GroupNorm(1, 3), nn.InstanceNorm1d(3)])
def test_norms_of_single_rows_are_fine(norm):
    encoder = nn.Sequential(nn.Linear(5, 3), nn.Unflatten(1, (3, 1)), nn.Linear(1, 2))
    encoder = encoder if isinstance(norm, nn.LayerNorm) else encoder.append(norm)
    StochasticBackward(encoder)(video(4).float()).sum().backward()


@pytest.mark.parametrize("execution", ["split", "replay"])
@pytest.mark.parametrize("keep_ratio", [0.5, 1.0])
@pytest.mark.parametrize("learns", [True, False])
def test_rows_of_a_shape_that_the_encoder_does_not_take_are_one_line(execution, keep_ratio, learns):
    encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()).requires_grad_(learns)
    way = StochasticBackward(encoder, keep_ratio, execution=execution)
    with pytest.raises(ValueError, match=r"^the encoder does not take rows of shape \(") as caught:
        way(torch.zeros(6, 1, 8, 8))
    assert "1, 8, 8): Given groups=1, weight of size [4, 3, 3, 3]" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_mistake_in_the_shape_is_raised_as_it_is():
    class Full(nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        StochasticBackward(Full())(torch.zeros(2, 3))
