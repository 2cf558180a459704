import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.features.settings import RescaleSettings
from actionspan.features.steps import cut_windows
from actionspan.features.transform import fit_transform, transform_features
from actionspan.finetune.objectives import Projection, Resampling


def video(seed, count, duration=10.0):
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(0, duration, count))
    return random.normal(size=(count, 11)).astype(np.float32), times, duration


def by_stream(features):
    return {"rgb": features[:, :7], "flow": features[:, 7:]}


def fitted(settings, *videos):
    return fit_transform(settings, [(by_stream(rows), *more) for rows, *more in videos])


NOTHING = np.zeros((1, 11), np.float32), np.zeros(1), 1.0


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=4),
    grid=st.sampled_from(["video", "windows"]),
    method=st.sampled_from(["mean", "bins", "linear"]),
    components=st.sampled_from([0, 3]),
)
def test_it_gives_the_rows_of_the_features_stage(counts, grid, method, components):
    settings = RescaleSettings(grid=grid, steps=12, stride=5, method=method, components=components)
    videos = [video(seed, count) for seed, count in enumerate(counts)]
    transform = fitted(settings, *videos)
    for features, times, duration in videos:
        rows = Resampling(transform, times, duration)(
            Projection(transform)(torch.from_numpy(features))
        )
        sequence = transform_features(by_stream(features), times, duration, transform)
        expected = cut_windows(sequence, transform.starts(len(sequence)), 12)
        assert rows.shape == expected.shape
        np.testing.assert_allclose(rows.numpy(), expected, atol=2e-5)


def test_gradients_reach_the_features_exactly():
    features, times, duration = video(3, 9)
    transform = fitted(RescaleSettings(steps=12, components=3), (features, times, duration))
    project = Projection(transform).double()
    resample = Resampling(transform, times, duration).double()
    rows = torch.from_numpy(features).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: resample(project(x)), rows)


@pytest.mark.parametrize("count", [1, 2, 20])
def test_a_projection_of_nothing_has_the_shapes_of_the_fitted_one(count):
    features, times, duration = video(1, count)
    settings = RescaleSettings(steps=5, components=3)
    known, blank = fitted(settings, video(1, 20)), fitted(settings, NOTHING)
    assert blank.channels == known.channels == 6
    shapes, wanted = (
        {name: value.shape for name, value in Projection(each).state_dict().items()}
        for each in (blank, known)
    )
    assert shapes == wanted
    rows = Resampling(blank, times, duration)(Projection(blank)(torch.from_numpy(features)))
    assert rows.shape == (1, 5, 6)
