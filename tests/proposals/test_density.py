"""The density of instances: what it learns, from which videos, and the file it is kept in."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import write_annotations
from actionspan.arrays import temporal_iou
from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.proposals import density_training
from actionspan.proposals.density_training import (
    FORMAT,
    Footage,
    cut_cuts,
    cut_instances,
    instance_shares,
    load_density,
    train_density,
)
from actionspan.proposals.intensity import (
    DensityModel,
    Intensity,
    density_from_state,
    density_state,
)
from actionspan.proposals.lattice import lattice, peak_pairs, usual_lengths
from actionspan.proposals.selection import calibrate, distinct_events, right_events
from actionspan.proposals.settings import DensitySettings, EventSettings, LatticeSettings
from actionspan.storage.model_files import Part, read_model, write_model
from actionspan.temporal.probabilities import Prediction, write_probabilities
from actionspan.video.marks import Marks
from worlds.scored import annotated

STEPS = 60
# without dropout, whose noise draws the mean of an exponential down
SETTINGS = DensitySettings(epochs=30, hidden=24, training_cells=250, dropout=0.0)
QUICK = replace(SETTINGS, epochs=1, training_cells=20)
GRID = LatticeSettings(ratio=1.25, stride=0.2)


def easy_video(seed, steps=STEPS):
    """Return curves (T, 3) that show instances (G, 2), which are in steps, without a doubt."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 4))
    edges = np.sort(random.choice(np.arange(3, steps - 3, 4), 2 * count, replace=False))
    instances = edges.reshape(-1, 2).astype(float)
    middles = np.arange(steps) + 0.5
    curves = np.full((steps, 3), 0.03)
    for start, end in instances:
        curves[:, 0] += 0.9 * np.exp(-((middles - start) ** 2) / 2)
        curves[(middles > start) & (middles < end), 1] = 0.95
        curves[:, 2] += 0.9 * np.exp(-((middles - end) ** 2) / 2)
    return curves.clip(0, 1).astype(np.float32), instances


def easy_footage(count, first=0, parts=3):
    return [
        Footage(probabilities=curves, seconds=0.5, instances=instances, part=place % parts)
        for place, (curves, instances) in enumerate(map(easy_video, range(first, first + count)))
    ]


def fit_density(videos, settings, grid):
    spans = [video.seconds * np.diff(video.instances)[:, 0] for video in videos]
    lengths = usual_lengths(np.concatenate(spans))
    return density_training.fit_density(videos, lengths, settings, grid)


@pytest.fixture(scope="module")
def model() -> DensityModel:
    return fit_density(easy_footage(18), SETTINGS, GRID)


def test_an_instance_lies_at_the_cells_that_overlap_it_most():
    overlaps = np.array([[0.95, 0.3], [0.9, 0.5], [0.59, 0.1]])
    first = np.exp(-np.array([0.05, 0.1]) / 0.05)
    first /= first.sum()
    # the second has no cell of 0.6 and lies at its nearest
    np.testing.assert_allclose(instance_shares(overlaps), [first[0], first[1] + 1, 0])


def test_as_many_instances_are_expected_as_there_are_and_where_they_are(model):
    """Of new videos too: the sum of the density over all cells is the number of instances."""
    for first, tolerance in ((0, 0.15), (100, 0.25)):
        expected = near = far = 0.0
        videos = easy_footage(18, first)
        for video in videos:
            cells, density = model.density(video.probabilities, 30.0)
            best = temporal_iou(cells, video.instances * 0.5).max(axis=1)
            expected += density.sum()
            near += density[best > 0.7].sum()
            far += density[best < 0.3].sum()
        assert expected == pytest.approx(sum(len(v.instances) for v in videos), rel=tolerance)
        assert near > 4 * far


def test_cells_are_in_seconds_and_a_part_is_one_members(model):
    (video,) = easy_footage(1, 7)
    cells, density = model.density(video.probabilities, 30.0)
    assert cells.shape == (len(density), 2)
    assert cells.max() == pytest.approx(30)
    regular = lattice(STEPS, *(length / 0.5 for length in model.lengths), GRID) * 0.5
    np.testing.assert_allclose(cells[: len(regular)], regular)
    pairs = peak_pairs(video.probabilities, *(length / 0.5 for length in model.lengths), 500) * 0.5
    np.testing.assert_allclose(cells[len(regular) :], pairs)
    assert len(pairs)
    each = [model.density(video.probabilities, 30.0, part)[1] for part in range(3)]
    np.testing.assert_array_equal(np.mean(each, axis=0), density)
    assert not np.array_equal(each[0], each[1])


def same_weights(one, two) -> bool:
    weights = one.state_dict(), two.state_dict()
    return all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_member_never_sees_the_videos_of_its_part():
    settings = replace(SETTINGS, epochs=2)
    videos = easy_footage(9)
    before = fit_density(videos, settings, GRID)
    noise = np.random.default_rng(0).random((STEPS, 3)).astype(np.float32)
    spoilt = [replace(one, probabilities=noise) if one.part == 1 else one for one in videos]
    after = fit_density(spoilt, settings, GRID)
    kept = [same_weights(*pair) for pair in zip(before.members, after.members, strict=True)]
    assert kept == [False, True, False]
    assert after.calibration != before.calibration


def test_a_density_survives_its_file_to_the_bit(model, tmp_path):
    write_model(tmp_path / "d.pt", {"format": FORMAT, "density": density_state(model)})
    (video,) = easy_footage(1, 5)
    state = Part(density_state(model), "density")
    for again in (load_density(tmp_path / "d.pt"), density_from_state(state)):
        for name in ("lengths", "lattice", "calibration"):
            assert getattr(again, name) == getattr(model, name)
        found, expected = (one.density(video.probabilities, 30.0) for one in (again, model))
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, two)


def test_an_untrained_member_expects_its_mean_at_every_cell():
    member = Intensity(hidden=4, features=112).eval()
    member.base.fill_(0.25)
    last = member.layers[-1]
    assert isinstance(last, torch.nn.Linear)
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
        features = np.random.default_rng(0).random((20000, 112)).astype(np.float32)
        np.testing.assert_allclose(member.density(features), 0.25)
        last.bias[2] = 99.0
        assert member.density(features[:1])[0] == pytest.approx(0.25 * np.exp(12), rel=1e-5)


@pytest.fixture
def files(tmp_path):
    """probabilities.h5 and annotations.json of easy training videos and one for validation."""
    names = [f"v{number}" for number in range(7)]
    subsets = ["training"] * 6 + ["validation"]
    videos = [easy_video(number, STEPS + number) for number in range(7)]
    steps = [len(curves) for curves, _ in videos]
    predicted = [
        Prediction(curves, parts=np.full(len(curves), place % 2) if place < 6 else None)
        for place, (curves, _) in enumerate(videos)
    ]
    durations, path = [count / 2 for count in steps], tmp_path / "probabilities.h5"
    write_probabilities(path, "test", names, durations, subsets, steps, predicted)
    known = [
        annotated(name, *(instances / 2).tolist(), subset=subset, duration=duration)
        for name, subset, duration, (_, instances) in zip(
            names, subsets, durations, videos, strict=True
        )
    ]
    write_annotations(tmp_path / "annotations.json", known)
    return path, tmp_path / "annotations.json", known


def trained(files, settings) -> DensityModel:
    probabilities, annotations, _ = files
    out = probabilities.with_name("density.safetensors")
    train_density(probabilities, annotations, out, settings, GRID)
    return load_density(out)


def cuts_of(video):
    """Return a cut at each start and end of a video's instances."""
    ends = [(end, 0.9) for one in video.instances for end in (one.start, one.end)]
    return np.array(ends)


def add_cuts(probabilities, cuts):
    with h5py.File(probabilities, "a") as file:
        file["cuts"] = np.concatenate(cuts)
        file["cut_offsets"] = np.cumsum([0, *map(len, cuts)])


def test_the_share_of_instances_on_cuts_is_that_of_the_training_videos(files):
    """All of the validation video's are, and none of a video without cuts counts."""
    probabilities, _, known = files
    cuts = list(map(cuts_of, known))
    cuts[0][:, 1] = 0.1  # no cut
    cuts[1] = np.array([[0.7, 0.9]])  # far from all
    on = sum(len(one.instances) for one in known[2:6])
    of = on + len(known[1].instances)
    add_cuts(probabilities, cuts)
    for stated, wanted in ((None, on / of), (0.25, 0.25)):
        made = trained(files, replace(QUICK, on_cuts=stated))
        assert made.on_cuts == pytest.approx(wanted)
    curves, duration = easy_video(3, STEPS + 3)[0], (STEPS + 3) / 2
    lattice_alone = made.density(curves, duration)
    cells, density = made.density(curves, duration, marks=Marks(cuts[3]))
    assert len(cells) > len(lattice_alone[0])
    assert density.sum() == pytest.approx(lattice_alone[1].sum())
    moved = 1 - density[: len(lattice_alone[1])].sum() / density.sum()
    assert 0.1 < moved <= 0.25 + 1e-9


@pytest.mark.parametrize(("moved", "worth"), [(0.0, True), (0.6, False)])
def test_bouts_are_cells_where_lists_of_the_training_videos_recall_more_with_them(
    files, moved, worth
):
    """They do where bouts are the instances, not where they find them with the least tIoU."""
    probabilities, _, known = files
    rows = [[(one.start, one.end, 1.0) for one in video.instances] for video in known]
    bouts = [np.array(own, np.float64).reshape(-1, 3) for own in rows]
    shifted = [own + np.outer(own[:, 1] - own[:, 0], [moved / 2, moved / 2, 0]) for own in bouts]
    with h5py.File(probabilities, "a") as file:
        for key, own in (("cut", [np.zeros((0, 2))] * len(known)), ("bout", shifted)):
            file[f"{key}s"] = np.concatenate(own)
            file[f"{key}_offsets"] = np.cumsum([0, *map(len, own)])
    assert trained(files, QUICK).per_bout == (pytest.approx(1) if worth else 0)
    made = trained(files, replace(QUICK, per_bout=0.25))
    curves, duration = easy_video(3, STEPS + 3)[0], (STEPS + 3) / 2
    alone = made.density(curves, duration)
    cells, density = made.density(curves, duration, marks=Marks(bouts=shifted[3]))
    np.testing.assert_array_equal(cells, np.concatenate([alone[0], shifted[3][:, :2]]))
    np.testing.assert_array_equal(density[len(alone[1]) :], 0.25)


def test_chances_are_those_of_lists_with_shots(files):
    """Of instances that lie on cuts, cuts make more events right."""
    probabilities, _, known = files
    settings = replace(SETTINGS, epochs=3, training_cells=50, on_cuts=1.0)
    plain = trained(files, settings)
    add_cuts(probabilities, list(map(cuts_of, known)))
    shown = trained(files, settings)
    assert all(map(same_weights, plain.members, shown.members)), "the cells are the same"
    assert plain.calibration != shown.calibration


def test_cuts_of_a_part_lie_where_its_steps_were_joined():
    # of 0.5 s: steps 2, 3, 4 and 7, 8, 9 stay; 2.2 s is in step 4, 2.8 and 3.6 near the joint
    kept = np.arange(10) % 5 > 1
    for change, expected in ((0.9, [1.2, 0.9]), (0.1, [1.5, 0.4])):
        cuts = np.array([[1.2, 0.5], [2.2, change], [2.8, 0.4], [3.6, 0.2], [4.9, 0.7]])
        found = cut_cuts(cuts, kept, 0.5)
        np.testing.assert_allclose(found, [[0.2, 0.5], expected, [2.9, 0.7]], atol=1e-9)
    assert cut_cuts(np.zeros((0, 2)), kept, 0.5).shape == (0, 2)


def density_step(files, out, *more):
    probabilities, annotations, _ = files
    words = ["proposals", "density", "--probabilities", str(probabilities)]
    words += ["--annotations", str(annotations), "--out", str(out)]
    return main([*words, "--epochs=2", "--hidden=8", "--training-cells=50", "--ratio=1.3", *more])


def test_a_file_of_training_videos_becomes_a_density(files, tmp_path):
    probabilities, annotations, known = files
    assert density_step(files, tmp_path / "density.safetensors") == 0
    made = load_density(tmp_path / "density.safetensors")
    assert len(made.members) == 2
    assert made.lattice == LatticeSettings(ratio=1.3)
    # validation videos are not looked at: neither their lengths nor their curves
    footage = [
        Footage(probabilities=curves, seconds=0.5, instances=instances, part=number % 2)
        for number in range(6)
        for curves, instances in [easy_video(number, STEPS + number)]
    ]
    settings = DensitySettings(epochs=2, hidden=8, training_cells=50)
    expected = fit_density(footage, settings, LatticeSettings(ratio=1.3))
    assert made.lengths == pytest.approx(expected.lengths)
    assert all(map(same_weights, made.members, expected.members))
    other = fit_density(footage, replace(settings, seed=1), LatticeSettings(ratio=1.3))
    assert not any(map(same_weights, made.members, other.members))


def test_each_part_of_a_video_is_a_video_of_its_own(tmp_path):
    """Its last three steps are too few for one."""
    curves = easy_video(1)[0][:23]
    parts = np.repeat([0, 1, 0, 1], [4, 8, 8, 3])
    parts[20:] = 2
    write_probabilities(
        tmp_path / "p.h5", "x", ["a"], [11.5], ["training"], [23], [Prediction(curves, parts=parts)]
    )
    known = annotated("a", (1, 7), (8.5, 9.5), subset="training", duration=11.5)
    write_annotations(tmp_path / "a.json", [known])
    quick = replace(SETTINGS, epochs=2)
    train_density(tmp_path / "p.h5", tmp_path / "a.json", tmp_path / "d.pt", quick, GRID)
    footage = [
        Footage(probabilities=curves[parts == part], seconds=0.5, instances=rows, part=part)
        for part, rows in enumerate((np.array([[2.0, 6], [9, 11]]), np.array([[0.0, 8]])))
    ]
    lengths = usual_lengths([6.0, 1.0])  # of the instances as they are, not of what is left
    made = load_density(tmp_path / "d.pt")
    expected = density_training.fit_density(footage, lengths, quick, GRID)
    assert made.lengths == pytest.approx(lengths)
    assert all(map(same_weights, made.members, expected.members))
    assert made.calibration == expected.calibration


@pytest.mark.parametrize("events", [2, 30])
def test_the_list_that_is_shown_is_the_one_that_was_calibrated(files, tmp_path, events):
    """Chances mean what they say for lists of this length and overlap, whatever the default's."""
    made, digests = [], []
    for name, more in (("plain", []), ("own", [f"--events={events}", "--overlap=0.1"])):
        assert density_step(files, tmp_path / name, *more) == 0
        made.append(load_density(tmp_path / name))
        digests.append(read_model(tmp_path / name).value["digest"])
    assert all(map(same_weights, made[0].members, made[1].members))
    gains, right, instances = [], [], 0
    for number in range(6):
        curves, truth = easy_video(number, STEPS + number)
        cells = made[1].density(curves, 0.5 * len(curves), number % 2)
        shown = distinct_events(*cells, EventSettings(events=events, overlap=0.1))
        gains.append(shown[1])
        right.append(right_events(shown[0], truth * 0.5))
        instances += len(truth)
    expected = calibrate(np.concatenate(gains), np.concatenate(right), instances)
    assert made[1].calibration == pytest.approx(expected)
    assert made[1].calibration != made[0].calibration
    assert digests[0] != digests[1]


@given(
    kept=st.lists(st.booleans(), min_size=1, max_size=10),
    ends=st.lists(st.integers(0, 80), min_size=2, max_size=8, unique=True),
)
def test_instances_are_cut_with_their_steps(kept, ends):
    """Against a literal cut: eighths of a step, those of lost steps deleted."""
    bounds = sorted(end for end in ends if end <= 8 * len(kept))
    spans = list(zip(bounds[::2], bounds[1::2], strict=False))
    eighths = np.repeat(kept, 8)
    expected = []
    for start, end in spans:
        inside = np.zeros(len(eighths), bool)
        inside[start:end] = True
        left = np.flatnonzero(inside[eighths])
        if len(left) >= 8 or len(left) == end - start:
            expected.append((left[0] / 8, (left[-1] + 1) / 8))
    instances = np.array(spans, float).reshape(-1, 2) / 8
    assert list(map(tuple, cut_instances(instances, np.array(kept)))) == expected


def test_without_an_instance_or_parts_there_is_one_line(files):
    """Only a network that left a part of the training videos out can be calibrated on it."""
    probabilities, annotations, known = files
    with h5py.File(probabilities, "r+") as file:
        file.move("parts", "hidden")
    with pytest.raises(InputError, match=r"probabilities.h5: training video v0: no parts; only"):
        trained(files, SETTINGS)
    with h5py.File(probabilities, "r+") as file:
        file.move("hidden", "parts")
    bare = [replace(one, instances=()) if one.subset == "training" else one for one in known]
    write_annotations(annotations, bare)
    with pytest.raises(InputError, match=r"annotations.json: no training video with features has"):
        trained(files, SETTINGS)
    assert not probabilities.with_name("density.safetensors").exists()


def test_a_member_that_would_learn_no_instance_learns_from_all_videos():
    (one,) = easy_footage(1)
    calm = replace(one, instances=np.zeros((0, 2)), part=1)
    made = fit_density([one, calm, replace(calm, part=2)], replace(SETTINGS, epochs=1), GRID)
    bases = [float(member.base) for member in made.members]
    assert bases[0] > 0, "the first would have nothing, and learns from all three"
    assert bases[1:] == pytest.approx([1.5 * bases[0]] * 2, rel=1e-5), "of two thirds of the cells"
