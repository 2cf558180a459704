"""The span network: its members, what each leaves out, and what lies beyond the end of a video."""

import math

import numpy as np
import pytest
import torch

from actionspan.temporal.labels import COLUMNS, INSIDE, KINDS, NO_PART, PART
from actionspan.temporal.span import DILATIONS, PATHS, SpanNetwork

MEMBERS, CHANNELS = 3, 5


@pytest.fixture
def model() -> SpanNetwork:
    torch.manual_seed(3)
    return SpanNetwork(CHANNELS, hidden=32, members=MEMBERS).eval()


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Four videos of 20, 14, 9 and 20 steps in windows of 20, of parts 0, 1, 2 and none."""
    torch.manual_seed(5)
    features = torch.randn((4, 20, CHANNELS))
    labels = torch.zeros((4, 20, COLUMNS))
    labels[..., :KINDS] = (torch.rand((4, 20, KINDS)) > 0.7).float()
    for row, (length, part) in enumerate(((20, 0), (14, 1), (9, 2), (20, NO_PART))):
        features[row, :, 0] = 0
        features[row, :length, 0] = 1
        features[row, length:, 1:] = 0
        labels[row, :length, INSIDE] = 1
        labels[row, length:, :KINDS] = 0
        labels[row, :, PART] = part
    return features, labels


def of_member(model: SpanNetwork, member: int) -> list[tuple[str, torch.Tensor]]:
    """Return a mask of each parameter: where a member has its values."""
    width = model.raw.out_channels // MEMBERS
    masks = []
    for name, parameter in model.named_parameters():
        mask = torch.zeros_like(parameter, dtype=torch.bool)
        if name.startswith(("raw", "centred")):
            mask[member * width : (member + 1) * width] = True
        else:
            size = KINDS if name.startswith("last") else width
            for path in range(PATHS):
                first = (path * MEMBERS + member) * size
                mask[first : first + size] = True
        masks.append((name, mask))
    return masks


def test_members_share_no_weight_and_have_all(model):
    masks = [dict(of_member(model, member)) for member in range(MEMBERS)]
    for name, _ in model.named_parameters():
        assert torch.equal(sum(mask[name].int() for mask in masks), torch.ones_like(masks[0][name]))
    assert len(model.layers) == len(DILATIONS) == 3


def test_a_new_video_gets_the_mean_of_all_members(model, batch):
    features = batch[0]
    probabilities = model(features)
    assert probabilities.shape == (4, 20, 3)
    alone = torch.stack([model.without(features, part) for part in range(MEMBERS)])
    torch.testing.assert_close(probabilities, alone.mean(dim=0))
    assert (alone[0] - alone[1]).abs().max() > 1e-3


@pytest.mark.parametrize("part", range(MEMBERS))
def test_without_a_part_is_its_member_alone(model, batch, part):
    features = batch[0]
    expected = model.without(features, part)
    with torch.no_grad():
        for name, mask in of_member(model, part):
            model.get_parameter(name)[~mask] = 0
    assert torch.equal(model.without(features, part), expected)
    assert not torch.equal(model.without(features, (part + 1) % MEMBERS), expected)


def test_what_lies_beyond_a_video_changes_no_step_of_it(model, batch):
    features = batch[0]
    for row, length in enumerate((20, 14, 9)):
        alone = model(features[row : row + 1, :length])[0]
        torch.testing.assert_close(model(features)[row, :length], alone)
        longer = torch.nn.functional.pad(features[row : row + 1], (0, 0, 0, 13))
        torch.testing.assert_close(model(longer)[0, :length], alone)
    garbage = features.clone()
    garbage[..., 1:][features[..., 0] == 0] = 7
    inside = features[..., 0] > 0
    assert torch.equal(model(garbage)[inside], model(features)[inside])
    assert torch.isfinite(model(torch.zeros((1, 6, CHANNELS)))).all()  # no step inside


def test_one_path_sees_features_and_the_other_their_difference_to_the_videos_mean(model, batch):
    features = batch[0]
    inside = features[..., :1]
    shifted = features.clone()
    shifted[..., 1:] += torch.tensor([1.0, -2.0, 0.5, 3.0]) * inside
    raw, centred = (model.logits(shifted) - model.logits(features)).abs().amax(dim=(1, 2, 3, 4))
    assert centred < 1e-5
    assert raw > 1e-2


def loss_by_hand(logits: np.ndarray, labels: np.ndarray) -> list[float]:
    """The mean over paths and members of the balanced cross entropy of each kind of label."""
    parts = []
    for kind in range(KINDS):
        losses = []
        for path in range(PATHS):
            for member in range(MEMBERS):
                used = (labels[..., INSIDE] == 1) & (labels[..., PART] != member)
                target = labels[..., kind][used]
                ratio = np.clip(used.sum() / max(target.sum(), 1), 1.05, 21)
                p = 1 / (1 + np.exp(-logits[path, member, ..., kind][used]))
                entropy = -ratio / 2 * target * np.log(p)
                entropy -= ratio / 2 / (ratio - 1) * (1 - target) * np.log(1 - p)
                losses.append(entropy.sum() / used.sum())
        parts.append(np.mean(losses))
    return parts


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_the_loss_is_of_the_steps_that_each_member_may_see(model, batch, share):
    """Labels are shares of a step; the total is the sum over all paths and members."""
    features, labels = batch
    labels[..., :KINDS] *= share
    with torch.no_grad():
        found = model.loss(features, labels)
        logits = model.logits(features).double().numpy()
    start, action, end = loss_by_hand(logits, labels.double().numpy())
    total = PATHS * MEMBERS * (2 * action + start + end)
    np.testing.assert_allclose(torch.stack(list(found)), [total, start, action, end], rtol=1e-5)


@pytest.mark.parametrize("member", range(MEMBERS))
def test_with_nothing_to_learn_from_a_member_does_not_move(model, batch, member):
    features, labels = (each[member : member + 1] for each in batch)
    model.loss(features, labels).total.backward()
    for name, own in of_member(model, member):
        gradient = model.get_parameter(name).grad
        assert not gradient[own].any()
        assert gradient[~own].any()


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_the_losses_of_shares_add_up_to_that_of_the_batch(model, batch, cut):
    features, labels = batch
    whole = model.loss(features, labels)
    rows = slice(cut), slice(cut, None)
    one, two = (model.loss(features[share], labels[share], labels) for share in rows)
    for expected, *parts in zip(whole, one, two, strict=True):
        torch.testing.assert_close(sum(parts), expected)
    wanted, found = (
        torch.autograd.grad(total, list(model.parameters()))
        for total in (whole.total, one.total + two.total)
    )
    torch.testing.assert_close(found, wanted)


def test_a_surely_wrong_probability_has_a_loss_and_a_gradient(model, batch):
    features, labels = batch
    with torch.no_grad():
        model.last.bias.fill_(-300.0)
    total = model.loss(features, labels).total
    total.backward()
    assert 100 < total.item() < math.inf
    assert model.last.bias.grad.abs().sum() > 0


def test_noise_stays_off_the_first_column_and_what_lies_beyond_the_end():
    model = SpanNetwork(50, hidden=8)
    video = torch.zeros((300, 50))
    video[:200, 0] = 1
    before = video.clone()
    model.add_noise(video, 0.5, torch.Generator().manual_seed(1))
    assert torch.equal(video[:, 0], before[:, 0])
    assert torch.equal(video[200:], before[200:])
    noise = video[:200, 1:]
    assert float(noise.std()) == pytest.approx(0.5, rel=0.02)
    assert float(noise.mean()) == pytest.approx(0, abs=0.02)
