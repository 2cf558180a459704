import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import cut_windows
from actionspan.features.transform import transform_features
from actionspan.finetune.objectives import Projection, Resampling, fit_projection, unfitted

WIDTHS = {"rgb": 7, "flow": 4}


def video(seed, count, duration=10.0):
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(0, duration, count))
    return random.normal(size=(count, 11)).astype(np.float32), times, duration


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=4),
    grid=st.sampled_from(["video", "windows"]),
    method=st.sampled_from(["mean", "bins", "linear"]),
    components=st.sampled_from([0, 3]),
)
def test_it_gives_what_the_features_stage_gives(counts, grid, method, components):
    settings = RescaleSettings(grid=grid, steps=12, stride=5, method=method, components=components)
    videos = [video(seed, count) for seed, count in enumerate(counts)]
    transform = fit_projection(*zip(*videos, strict=True), settings, WIDTHS)
    for features, times, duration in videos:
        rows = Resampling(transform, times, duration)(
            Projection(transform)(torch.from_numpy(features))
        )
        raw = {"rgb": features[:, :7], "flow": features[:, 7:]}
        sequence = transform_features(raw, times, duration, transform)
        expected = cut_windows(sequence, transform.starts(len(sequence)), 12)
        assert rows.shape == expected.shape
        np.testing.assert_allclose(rows.numpy(), expected, atol=2e-5)


def test_gradients_reach_the_features_exactly():
    features, times, duration = video(3, 9)
    settings = RescaleSettings(steps=12, components=3)
    transform = fit_projection([features], [times], [duration], settings, WIDTHS)
    project = Projection(transform).double()
    resample = Resampling(transform, times, duration).double()
    rows = torch.from_numpy(features).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: resample(project(x)), rows)


def test_a_projection_of_nothing_has_the_shapes_of_the_fitted_one():
    settings = RescaleSettings(steps=12, components=3)
    features, times, duration = video(1, 20)
    fitted = Projection(fit_projection([features], [times], [duration], settings, WIDTHS))
    blank = Projection(unfitted(settings, WIDTHS))
    assert blank.channels == fitted.channels == 6
    shapes = {name: value.shape for name, value in fitted.state_dict().items()}
    assert shapes == {name: value.shape for name, value in blank.state_dict().items()}


@pytest.mark.parametrize("count", [1, 2])
def test_a_video_of_one_or_two_snippets_works(count):
    features, times, duration = video(1, count)
    transform = unfitted(RescaleSettings(steps=5, components=2), WIDTHS)
    rows = Resampling(transform, times, duration)(Projection(transform)(torch.from_numpy(features)))
    assert rows.shape == (1, 5, 4)
