"""Cues of change against a loop that follows their definition, and what they must not depend on."""

import numpy as np
import pytest

from actionspan.features.cues import REACHES, change, cues

FLOAT = np.float32


def change_by_hand(features: np.ndarray) -> np.ndarray:
    """The definition, edge by edge."""
    steps = len(features)
    curves = np.zeros((steps, len(REACHES)))
    for column, reach in enumerate(REACHES):
        distance = {}
        for edge in range(1, steps):
            before = features[max(0, edge - reach) : edge].mean(axis=0)
            after = features[edge : edge + reach].mean(axis=0)
            distance[edge] = np.sqrt(np.mean((before - after) ** 2))
        distance |= {0: distance[1], steps: distance[steps - 1]}
        for step in range(steps):
            curves[step, column] = (distance[step] + distance[step + 1]) / 2
    return curves


@pytest.mark.parametrize("steps", [2, 3, 9, 40])
def test_change_is_what_its_definition_says(rng, steps):
    features = rng.normal(size=(steps, 5)).astype(FLOAT)
    found = change(features)
    assert found.dtype == FLOAT
    np.testing.assert_allclose(found, change_by_hand(features.astype(float)), atol=1e-6)
    # what all snippets share is nothing to it
    shifted = (features + rng.normal(size=5)).astype(FLOAT)
    np.testing.assert_allclose(found, change(shifted), atol=1e-5)


def test_a_step_peaks_at_its_edge_for_every_reach():
    features, edges = np.zeros((60, 3), FLOAT), np.arange(61)
    features[23:] = 2.0
    for column, reach in enumerate(REACHES):
        distance = np.maximum(0, 2 - 2 * np.abs(edges - 23) / reach)
        found = change(features)[:, column]
        np.testing.assert_allclose(found, (distance[:-1] + distance[1:]) / 2, atol=1e-6)
        assert set(np.flatnonzero(found == found.max())) == {22, 23}


def test_cues_have_mean_0_and_deviation_2(rng):
    streams = {"rgb": rng.normal(size=(50, 6)), "flow": 100 * rng.normal(size=(50, 3))}
    motion = {"frame_difference": rng.random(50), "flow_magnitude": 40 * rng.random(50)}
    streams, motion = (
        {name: rows.astype(FLOAT) for name, rows in each.items()} for each in (streams, motion)
    )
    found = cues(streams, motion)
    assert found.shape == (50, 4 * 2 + 2)
    assert found.dtype == FLOAT
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(axis=0), 2, rtol=1e-5)
    # the order: streams as they come, then motion by name
    for column, expected in (
        (4, change(streams["flow"])[:, 0]),
        (8, np.log(motion["flow_magnitude"] + 1e-3)),
    ):
        correlation = np.corrcoef(found[:, column], expected)[0, 1]
        np.testing.assert_allclose(correlation, 1, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e4])
def test_a_video_that_never_changes_has_cues_of_0(value):
    still = {"rgb": np.full((20, 7), value, FLOAT)}
    found = cues(still, {"flow_magnitude": np.full(20, value, FLOAT)})
    np.testing.assert_array_equal(found, np.zeros((20, 5)))


def test_the_shortest_videos_have_cues_that_are_numbers():
    one, two = np.array([[1.0, 2.0]], FLOAT), np.array([[1.0, 2.0], [4.0, 6.0]], FLOAT)
    np.testing.assert_array_equal(cues({"rgb": one}, {"m": np.zeros(1, FLOAT)}), np.zeros((1, 5)))
    np.testing.assert_allclose(change(two), np.full((2, 4), np.sqrt((9 + 16) / 2)), rtol=1e-6)
    # one edge: change is the same at both snippets, motion differs
    found = cues({"rgb": two}, {"m": np.array([0.1, 0.5], FLOAT)})
    np.testing.assert_allclose(found, [[0, 0, 0, 0, -2], [0, 0, 0, 0, 2]], atol=1e-6)


def test_motion_below_0_counts_as_none():
    streams = {"rgb": np.zeros((3, 2), FLOAT)}
    below, none = (cues(streams, {"m": np.array([m, 0.2, 0.4], FLOAT)}) for m in (-1.0, 0.0))
    np.testing.assert_array_equal(below, none)
    assert np.isfinite(below).all()
