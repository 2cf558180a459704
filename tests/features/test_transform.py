"""Principal components against numpy's SVD, and scales against closed forms."""

import numpy as np
import pytest

from actionspan.features.transform import (
    Moments,
    StreamTransform,
    Transform,
    fit_stream,
    transform_features,
)


def moments_of(rows: np.ndarray, blocks: int = 5) -> Moments:
    moments = Moments(rows.shape[1])
    for block in np.array_split(rows.astype(np.float32), blocks):
        moments.add(block)
    return moments


def correlated(rng: np.random.Generator, features: int = 6) -> np.ndarray:
    mixing = rng.normal(size=(features, features)) * np.arange(1, features + 1)
    return (rng.normal(size=(400, features)) @ mixing + 3).astype(np.float32)


@pytest.fixture
def rows(rng):
    return correlated(rng)


def test_streamed_moments_are_those_of_all_rows(rows, rng):
    np.testing.assert_allclose(moments_of(rows).mean, rows.mean(axis=0, dtype=float), rtol=1e-9)
    large = (rng.integers(0, 8, size=(500, 3)) + 2.0**20).astype(np.float32)  # costs no digits
    for each in (rows, large):
        expected = np.cov(each.T.astype(float), bias=True)
        np.testing.assert_allclose(moments_of(each).covariance, expected, rtol=1e-9, atol=1e-9)


def test_components_are_the_right_singular_vectors(rows):
    fitted = fit_stream(moments_of(rows), 4, "none")
    centred = rows.astype(float) - rows.mean(axis=0, dtype=float)
    _, singular, vectors = np.linalg.svd(centred, full_matrices=False)
    cosines = np.abs(np.sum(fitted.components * vectors[:4], axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-5)
    projected = fitted.apply(rows)
    np.testing.assert_allclose(projected.var(axis=0) * len(rows), singular[:4] ** 2, rtol=1e-4)
    # signs are determined, and more components than features keep all
    fitted = fit_stream(moments_of(rows), 50, "none")
    assert fitted.features == 6
    largest = np.abs(fitted.components).argmax(axis=1)
    assert (fitted.components[np.arange(6), largest] > 0).all()


@pytest.mark.parametrize("components", [0, 3])
def test_scales_give_mean_0_and_variance_1(rows, components):
    """Of each dimension, or of the stream, whose proportions stay."""
    none, dimension, stream = (
        fit_stream(moments_of(rows), components, how).apply(rows)
        for how in ("none", "dimension", "stream")
    )
    for out in (dimension, stream):
        np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(dimension.var(axis=0), 1, atol=1e-4)
    assert stream.var(axis=0).mean() == pytest.approx(1, abs=1e-4)
    ratio = stream.std(axis=0) / none.std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    if components == 0:
        np.testing.assert_array_equal(none, rows)


@pytest.mark.parametrize("components", [0, 3])
@pytest.mark.parametrize("standardise", ["stream", "dimension"])
def test_dimensions_that_never_vary_come_out_as_0(components, standardise):
    rows = np.full((10, 3), 4.0, np.float32)
    out = fit_stream(moments_of(rows), components, standardise).apply(rows)
    np.testing.assert_array_equal(out, 0)


def test_a_transform_survives_being_arrays_and_refuses_others(rng):
    rows, three, five = (correlated(rng, features) for features in (6, 3, 5))
    streams = {
        "rgb": fit_stream(moments_of(rows), 4, "stream"),
        "flow": fit_stream(moments_of(three), 0, "dimension"),
    }
    transform, times = Transform(steps=10, method="bins", streams=streams), np.arange(400) + 0.5
    again = Transform.from_arrays(transform.to_arrays())
    assert (again.steps, again.method, list(again.streams)) == (10, "bins", ["rgb", "flow"])
    raw = {"rgb": rows, "flow": three}
    out = transform_features(raw, times, 400.0, transform)
    assert out.shape == (10, 7)
    np.testing.assert_array_equal(transform_features(raw, times, 400.0, again), out)
    for wrong, message in (
        ({"rgb": rows}, "streams are rgb, the model has flow, rgb"),
        (raw | {"rgb": five}, "5 features a row, the model has 6"),
    ):
        with pytest.raises(ValueError, match=message):
            transform_features(wrong, times, 400.0, transform)


def test_apply_does_not_depend_on_the_rows_beside(rng):
    mean, components = (rng.normal(size=n).astype(np.float32) for n in (300, (40, 300)))
    fitted = StreamTransform(mean=mean, components=components, scale=np.ones(40, np.float32))
    rows = rng.normal(size=(100, 300)).astype(np.float32)
    alone = np.concatenate([fitted.apply(row[None]) for row in rows])
    np.testing.assert_array_equal(fitted.apply(rows), alone)
