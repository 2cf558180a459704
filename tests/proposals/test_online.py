"""Cells and proposals of a stream: the density of whole videos, given once, never changed."""

import numpy as np
import pytest
import torch

from actionspan.arrays import temporal_iou
from actionspan.proposals.intensity import DensityModel, Intensity
from actionspan.proposals.lattice import Lengths, peak_pairs
from actionspan.proposals.online import APART, OnlineCells, OnlineSelection
from actionspan.proposals.selection import Calibration, recall_reached, select
from actionspan.proposals.settings import LatticeSettings, SelectionSettings

SECONDS = 0.4


def density_model(ahead=1.0, longest=8.0):
    torch.manual_seed(2)
    return DensityModel(
        members=[Intensity(8).eval(), Intensity(8).eval()],
        lengths=Lengths(1.0, longest),
        lattice=LatticeSettings(),
        calibration=Calibration(),
        ahead=ahead,
    )


def curves_of(rng, steps=90):
    return rng.random((steps, 3)).astype(np.float32)


def given(model, curves):
    cells = OnlineCells(model)
    found = [cells.add(curve, SECONDS) for curve in curves]
    return [*found, cells.finish(SECONDS)]


def cells_of(model, curves):
    return np.concatenate([cells for cells, _ in given(model, curves)])


@pytest.mark.parametrize("ahead", [0.0, 1.0, 2.5])
def test_the_density_of_a_cell_is_that_of_the_whole_video(rng, ahead):
    model, curves = density_model(ahead), curves_of(rng)
    regular = lattice_lengths(model)
    for cells, density in given(model, curves):
        if not len(cells):
            continue
        paired = ~np.isin(cells[:, 1] - cells[:, 0], regular)
        features = model.features(curves, cells, paired, SECONDS)
        lengths = cells[:, 1] - cells[:, 0]
        share = np.minimum(APART / (model.lattice.stride * lengths), 1)
        expected = model.expected(features) * np.where(paired, 1, share)
        np.testing.assert_allclose(density, expected, rtol=1e-5)


def lattice_lengths(model):
    """Lengths as starts and ends have them, with their rounding."""
    rows = cells_of(model, np.zeros((90, 3), np.float32))  # no peak, so no pair
    return np.unique(rows[:, 1] - rows[:, 0])


def test_a_cell_is_given_once_and_when_its_surroundings_are_seen(rng):
    found = given(density_model(1.0), curves_of(rng))
    for step, (cells, _) in enumerate(found[:-1], start=1):
        assert (cells[:, 1] <= step - 1.5).all()
        assert (cells[:, 1] > step - 3.5).all()
    rows = np.concatenate([cells for cells, _ in found])
    assert len(np.unique(rows.round(6), axis=0)) == len(rows)
    assert (rows[:, 0] >= 0).all()
    assert rows[:, 1].max() == 90


def test_every_segment_has_a_cell_near(rng):
    rows = cells_of(density_model(), curves_of(rng))
    lengths = rng.uniform(1.0, 8.0, 300) / SECONDS
    starts = rng.uniform(0, 90 - lengths)
    near = temporal_iou(np.stack([starts, starts + lengths], axis=1), rows).max(axis=1)
    assert near.min() >= 0.87


def test_pairs_of_peaks_are_those_of_the_whole_video(rng):
    model, curves = density_model(longest=3.0), curves_of(rng)
    rows = cells_of(model, curves)
    pairs = peak_pairs(curves, 1.0 / SECONDS, 3.0 / SECONDS, 10_000)
    distance = np.abs(pairs[:, None] - rows[None]).max(axis=2).min(axis=1)
    assert len(pairs) > 50
    np.testing.assert_allclose(distance, 0, atol=1e-6)


def test_what_comes_later_changes_no_cell(rng):
    model, curves = density_model(), curves_of(rng)
    other = np.concatenate([curves[:40], curves_of(rng, 50)])
    for one, two in zip(given(model, curves)[:40], given(model, other)[:40], strict=True):
        for value, same in zip(one, two, strict=True):
            np.testing.assert_array_equal(value, same)


def candidates(rng, count=300):
    ends = np.sort(rng.uniform(5, 60, count))
    return np.stack([ends - rng.uniform(2, 12, count), ends], axis=1), rng.exponential(0.1, count)


def test_all_at_once_it_is_the_selection_of_whole_videos(rng):
    cells, density = candidates(rng)
    selection = OnlineSelection(counted=300, least=1e-3)
    selection.add(cells, density)
    found, gains = selection.emit(np.inf)
    chosen, expected = select(cells, density, SelectionSettings(proposals=300))
    count = int((expected >= 1e-3).sum())
    np.testing.assert_allclose(gains[:count], expected[:count], rtol=1e-3)
    np.testing.assert_array_equal(found[:50], cells[chosen[:50]])  # later ones are all but equal


def test_a_proposal_is_emitted_when_it_is_due_and_adds_what_its_score_says(rng):
    cells, density = candidates(rng)
    selection, emitted = OnlineSelection(least=1e-3), np.zeros((0, 2))
    for step in range(1, 66):
        here = (cells[:, 1] > step - 1) & (cells[:, 1] <= step)
        selection.add(cells[here], density[here])
        found, gains = selection.emit(step - 2.0)
        selection.forget(step - 20)
        assert (found[:, 1] <= step - 2).all()
        assert (found[:, 1] > step - 3 - 1e-9).all()
        assert (gains >= 1e-3).all()
        assert (np.diff(gains) <= 1e-6).all()
        known = cells[:, 1] <= step
        if len(found) and not len(emitted):
            worth = recall_reached(temporal_iou(found[:1], cells[known]).astype(np.float32))
            assert gains[0] <= float((worth @ density[known])[0]) + 1e-6
        emitted = np.concatenate([emitted, found])
    assert len(emitted) > 20
    assert len(np.unique(emitted, axis=0)) == len(emitted)


def test_a_better_candidate_that_waits_lowers_what_is_due():
    cells, density = np.array([[0.0, 10.0], [0.0, 10.5]]), np.array([0.2, 1.0])
    alone, both = OnlineSelection(), OnlineSelection()
    alone.add(cells[:1], density[:1])
    both.add(cells, density)
    assert alone.emit(10.0)[1][0] == pytest.approx(0.2)
    assert both.emit(10.0)[1][0] < 0.05
    found, gains = both.emit(10.5)
    np.testing.assert_array_equal(found, cells[1:])
    assert gains[0] < 1.0 + 0.2


def test_what_was_emitted_is_not_found_twice():
    selection = OnlineSelection()
    selection.add(np.array([[0.0, 10.0]]), np.array([1.0]))
    assert len(selection.emit(10.0)[0]) == 1
    selection.add(np.array([[0.0, 10.0]]), np.array([0.0]))
    assert len(selection.emit(20.0)[0]) == 0


def test_states_go_on_bitwise(rng):
    model, curves = density_model(), curves_of(rng)
    cells, others = OnlineCells(model), OnlineCells(model)
    selection, same = OnlineSelection(), OnlineSelection()
    for curve in curves[:30]:
        selection.add(*cells.add(curve, SECONDS))
        selection.emit(cells.steps - 5)
    others.load_state_dict(cells.state_dict())
    same.load_state_dict(selection.state_dict())
    for curve in curves[30:]:
        for left, right in ((cells, selection), (others, same)):
            right.add(*left.add(curve, SECONDS))
        for one, two in zip(
            selection.emit(cells.steps - 5), same.emit(cells.steps - 5), strict=True
        ):
            np.testing.assert_array_equal(one, two)
