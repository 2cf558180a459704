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


def correlated(rng: np.random.Generator, rows: int = 400, features: int = 6) -> np.ndarray:
    mixing = rng.normal(size=(features, features)) * np.arange(1, features + 1)
    return (rng.normal(size=(rows, features)) @ mixing + 3).astype(np.float32)


def test_streamed_moments_are_those_of_all_rows(rng):
    rows = correlated(rng)
    moments = moments_of(rows)
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0, dtype=np.float64), rtol=1e-9)
    expected = np.cov(rows.T.astype(np.float64), bias=True)
    np.testing.assert_allclose(moments.covariance, expected, rtol=1e-9, atol=1e-9)


def test_a_large_mean_costs_no_digits(rng):
    rows = (rng.integers(0, 8, size=(500, 3)) + 2.0**20).astype(np.float32)
    expected = np.cov(rows.T.astype(np.float64), bias=True)
    np.testing.assert_allclose(moments_of(rows).covariance, expected, rtol=1e-9, atol=1e-9)


def test_components_are_the_right_singular_vectors(rng):
    rows = correlated(rng)
    fitted = fit_stream(moments_of(rows), 4, "none")
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    _, singular, vectors = np.linalg.svd(centred, full_matrices=False)
    cosines = np.abs(np.sum(fitted.components * vectors[:4], axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-5)
    projected = fitted.apply(rows)
    np.testing.assert_allclose(projected.var(axis=0) * len(rows), singular[:4] ** 2, rtol=1e-4)


def test_signs_are_determined(rng):
    fitted = fit_stream(moments_of(correlated(rng)), 6, "none")
    largest = np.abs(fitted.components).argmax(axis=1)
    assert (fitted.components[np.arange(6), largest] > 0).all()


@pytest.mark.parametrize("components", [0, 3])
def test_dimension_gives_mean_0_and_variance_1_each(rng, components):
    rows = correlated(rng)
    out = fit_stream(moments_of(rows), components, "dimension").apply(rows)
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(out.var(axis=0), 1, atol=1e-4)


@pytest.mark.parametrize("components", [0, 3])
def test_stream_keeps_proportions_and_gives_mean_variance_1(rng, components):
    rows = correlated(rng)
    plain = fit_stream(moments_of(rows), components, "none").apply(rows)
    out = fit_stream(moments_of(rows), components, "stream").apply(rows)
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-4)
    assert out.var(axis=0).mean() == pytest.approx(1, abs=1e-4)
    ratio = out.std(axis=0) / plain.std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)


def test_none_without_components_changes_nothing(rng):
    rows = correlated(rng)
    np.testing.assert_array_equal(fit_stream(moments_of(rows), 0, "none").apply(rows), rows)


@pytest.mark.parametrize("components", [0, 3])
@pytest.mark.parametrize("standardise", ["stream", "dimension"])
def test_dimensions_that_never_vary_come_out_as_0(components, standardise):
    rows = np.full((10, 3), 4.0, np.float32)
    out = fit_stream(moments_of(rows), components, standardise).apply(rows)
    np.testing.assert_array_equal(out, 0)


def test_more_components_than_features_keeps_all(rng):
    assert fit_stream(moments_of(correlated(rng)), 50, "stream").features == 6


def make_transform(rng: np.random.Generator) -> Transform:
    return Transform(
        steps=10,
        method="bins",
        streams={
            "rgb": fit_stream(moments_of(correlated(rng)), 4, "stream"),
            "flow": fit_stream(moments_of(correlated(rng, features=3)), 0, "dimension"),
        },
    )


def test_a_transform_survives_being_arrays(rng):
    transform = make_transform(rng)
    again = Transform.from_arrays(transform.to_arrays())
    assert (again.steps, again.method, list(again.streams)) == (10, "bins", ["rgb", "flow"])
    raw = {"rgb": correlated(rng), "flow": correlated(rng, features=3)}
    times = np.arange(400) + 0.5
    out = transform_features(raw, times, 400.0, transform)
    assert out.shape == (10, 7)
    np.testing.assert_array_equal(transform_features(raw, times, 400.0, again), out)


def test_other_streams_or_widths_are_refused(rng):
    transform, times = make_transform(rng), np.arange(400) + 0.5
    with pytest.raises(ValueError, match="streams are rgb, the model has flow, rgb"):
        transform_features({"rgb": correlated(rng)}, times, 400.0, transform)
    raw = {"rgb": correlated(rng, features=5), "flow": correlated(rng, features=3)}
    with pytest.raises(ValueError, match="5 features a row, the model has 6"):
        transform_features(raw, times, 400.0, transform)


def test_apply_does_not_depend_on_the_rows_beside(rng):
    fitted = StreamTransform(
        mean=rng.normal(size=300).astype(np.float32),
        components=rng.normal(size=(40, 300)).astype(np.float32),
        scale=np.ones(40, np.float32),
    )
    rows = rng.normal(size=(100, 300)).astype(np.float32)
    alone = np.concatenate([fitted.apply(row[None]) for row in rows])
    np.testing.assert_array_equal(fitted.apply(rows), alone)
