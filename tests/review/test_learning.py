"""A round of learning from corrected videos: what is learned, tried and kept."""

import json
from dataclasses import astuple, replace

import numpy as np
import pytest

from actionspan.annotations.tables import Instance, read_instances
from actionspan.dataset.completing import Truth
from actionspan.errors import InputError
from actionspan.proposals.bundle_files import included_model
from actionspan.proposals.model_bundle import load_bundle
from actionspan.proposals.selection import Calibration
from actionspan.propose.proposer import proposed_of
from actionspan.review import judging, learning
from actionspan.review.corrections import Corrections
from actionspan.review.judging import Figures, expected, figures_of
from actionspan.review.learning import Learned, learn
from actionspan.storage.model_files import read_model, write_model


def included():
    return load_bundle(included_model())


@pytest.fixture
def three(footage):
    """What happens in the first three, which are corrected."""
    return {name: rows for name, rows in footage[1].items() if name != "video3"}


@pytest.fixture(scope="module")
def round_of_three(footage, tmp_path_factory):
    out = tmp_path_factory.mktemp("round")
    known = {name: rows for name, rows in footage[1].items() if name != "video3"}
    return learn(footage[0][:3], known, out, processes=2), out


def test_one_video_with_events_leaves_the_included_model_as_it_is(footage, tmp_path):
    """However many it has: of `cycles` one of six such models found half as many elsewhere."""
    videos, truth = footage
    for folder in ("whole", "fold-1"):  # a person's own
        (tmp_path / folder).mkdir()
    learned = learn(videos, {"video1": truth["video1"], "video2": []}, tmp_path)
    assert (learned.uses, learned.videos) == ("included", 2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["fold-1", "learned.json", "model.safetensors", "whole"]
    assert set(learned.figures) == {"included", "motion", "tiles"}
    assert "takes two videos with events" in learned.sentence()
    kept = load_bundle(tmp_path)
    for one in videos:
        for mine, theirs in zip(expected(kept, one), expected(included(), one), strict=True):
            assert np.array_equal(mine, theirs)


@pytest.mark.full
def test_events_that_overlap_are_learned_from(footage, tmp_path):
    """As many more are expected, from corrections that are saved to the model that is written."""
    videos = footage[0][:2]
    names = [one.video.video_id for one in videos]
    paths = {name: tmp_path / f"{name}.mp4" for name in names}
    totals = []
    for label in ("", "jump"):  # without a second event inside each, and with it
        folder = tmp_path / f"with {label}"
        folder.mkdir()
        corrections = Corrections(folder / "kept", paths, folder / "corrections.csv")
        for name in names:
            events = [(one.start, one.end, "wave") for one in footage[1][name]]
            events += [(start + 1, end - 1, label) for start, end, _ in events] * bool(label)
            rows = [
                [name, f"{start:.3f}", f"{end:.3f}", each, "added"] for start, end, each in events
            ]
            corrections.save(name, 0, {"done": True, "segments": []}, rows)
        known = Truth(corrections.table, paths)
        truth = {name: known.within(name, 60.0) for name in names}
        learning._train(videos, truth, folder / "model", 1)
        read = read_instances(folder / "model/annotations.json")
        assert {name: sorted(map(astuple, read[name])) for name in names} == {
            name: sorted(map(astuple, truth[name])) for name in names
        }
        model = replace(load_bundle(folder / "model"), base=None)
        totals.append(sum(expected(model, one)[1].sum() for one in videos))
    assert model.classifier.labels == ("jump", "wave")
    assert totals[1] / totals[0] == pytest.approx(2, abs=0.5)


@pytest.mark.full
def test_a_model_that_finds_more_is_used_and_carries_on_from_the_included_one(
    footage, round_of_three
):
    videos, truth = footage
    learned, out = round_of_three
    assert learned.uses == "own"
    assert learned.figures["own"].auc > learned.figures["included"].auc
    content = json.loads((out / "learned.json").read_text())
    assert (content["videos"], content["instances"], content["labels"]) == (3, 7, 2)
    assert content["sentence"] == learned.sentence()
    assert content["sentence"].startswith("3 corrected videos, 7 instances, 2 labels. ")
    assert "Your model is used." in content["sentence"]
    model = load_bundle(out)
    other = videos[3]  # nobody corrected it
    own, before = expected(replace(model, base=None), other), expected(included(), other)
    cells, density = expected(model, other)
    assert np.array_equal(cells, np.concatenate([own[0], before[0]]))
    assert model.base.own == pytest.approx(3 / 5)  # the included one weighs as much as two videos
    # both expect as many instances in the corrected videos
    there = sum(expected(included(), one)[1].sum() for one in videos[:3])
    assert model.base.weight == pytest.approx(0.4 * (7 + 0.5) / (there + 0.5))
    scaled = np.concatenate([0.6 * own[1], model.base.weight * before[1]])
    assert np.array_equal(density, scaled)
    name = other.video.video_id
    only = {name: truth[name]}
    now, then = (figures_of({name: each}, only).auc for each in ((cells, density), before))
    assert now > then + 10


@pytest.mark.full
def test_of_few_instances_events_have_ranks_and_no_chance(footage, round_of_three):
    learned, out = round_of_three
    assert learned.ranks
    raw, facts = footage[0][3].read()
    proposed = proposed_of(load_bundle(out), raw, facts, 60.0, "mine")
    rows = proposed.event_rows()
    assert proposed.chances is None
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["label"] for row in rows} <= {"wave", "jump"}


@pytest.mark.full
def test_videos_whose_labels_no_model_could_tell_are_not_counted(
    footage, three, tmp_path, monkeypatch
):
    """Held out, the only video that jumps leaves models without a classifier."""
    monkeypatch.setattr(learning, "FEWEST_FOR_CHANCES", 5)
    monkeypatch.setattr(learning, "ranks_well", lambda *_: True)
    known = {
        name: [replace(each, label="jump" if name == "video1" else "wave") for each in rows]
        for name, rows in three.items()
    }
    counted = []
    monkeypatch.setattr(
        learning, "operating_points", lambda rows, own: counted.append((set(rows), set(own))) or {}
    )
    assert learn(footage[0][:3], known, tmp_path, processes=2).uses == "own"
    assert counted == [({"video0", "video2"}, {"video0", "video2"})]


@pytest.mark.full
def test_of_enough_instances_each_label_has_its_thresholds(
    footage, three, round_of_three, tmp_path, monkeypatch
):
    assert round_of_three[0].thresholds == {}, "ranks are no chances"
    monkeypatch.setattr(learning, "FEWEST_FOR_CHANCES", 5)
    monkeypatch.setattr(learning, "ranks_well", lambda *_: True)
    learned = learn(footage[0], three, tmp_path, processes=2)
    assert not learned.ranks
    assert set(learned.thresholds) <= {"wave", "jump"}
    bar = load_bundle(tmp_path).density.calibration.bar
    for points in learned.thresholds.values():
        assert min(point.chance for point in points) >= bar - 1e-4, "what is never shown"
        assert all(0 <= point.precision <= 1 and 0 <= point.recall <= 1 for point in points)
    # the labels were given by models that had not seen their videos, most of them rightly
    assert max(points[-1].recall for points in learned.thresholds.values()) >= 0.5
    content = json.loads((tmp_path / "learned.json").read_text())
    assert content["thresholds"] == {
        label: [list(point) for point in points] for label, points in learned.thresholds.items()
    }


@pytest.mark.full
def test_one_label_is_no_label(footage, three, tmp_path):
    known = {name: [replace(each, label="wave") for each in rows] for name, rows in three.items()}
    learning._train(footage[0][:3], known, tmp_path, 1)
    assert load_bundle(tmp_path).classifier is None


@pytest.fixture
def learn_nothing(footage, three, trained, tmp_path):
    return lambda: learn(footage[0], three, tmp_path / "out")


def test_a_model_that_finds_no_more_is_not_used(learn_nothing):
    learned = learn_nothing()
    assert learned.figures["own"] == learned.figures["included"]
    assert learned.uses == "included"
    assert "Your model is not used yet." in learned.sentence()


def test_bouts_that_the_page_lists_stay_until_something_finds_more(
    footage, learn_nothing, tmp_path, monkeypatch
):
    """Whatever the AUC, and however many instances there are: they have no chance."""
    monkeypatch.setattr(learning, "FEWEST_FOR_CHANCES", 5)
    exact = {name: judging.segments_of(rows) for name, rows in footage[1].items()}
    monkeypatch.setattr(learning, "listed_bouts", lambda _, one: exact[one.video.video_id])
    learned = learn_nothing()
    assert learned.figures["included"].in_as_many == learned.instances
    assert learned.figures["own"].in_as_many < learned.instances
    assert (learned.uses, learned.ranks, learned.thresholds) == ("included", True, {})
    assert load_bundle(tmp_path / "out").ranks


def test_a_list_without_bouts_is_tried_as_the_page_shows_it(footage, learn_nothing, monkeypatch):
    monkeypatch.setattr(learning, "listed_bouts", lambda *_: None)
    first = learn_nothing().figures["included"].in_as_many
    exact = iter([judging.segments_of(rows) for rows in footage[1].values()])
    monkeypatch.setattr(learning, "listed_cells", lambda *_: next(exact))
    learned = learn_nothing()
    assert learned.figures["included"].in_as_many == learned.instances > first


def test_figures_by_hand():
    cells = np.array([[0.0, 10.0], [20.0, 30.0], [40.0, 50.0]])
    density = np.array([0.9, 0.5, 0.2])
    truth = {"one": [Instance(start=0, end=10, label="")], "two": ()}
    found = figures_of({"one": (cells, density), "two": (cells, density)}, truth)
    assert found[1:] == (1, 1, 1, 1)  # the first event of one video, one of one by one event
    assert found.auc == pytest.approx(99)  # a perfect set's
    late = {"one": [Instance(start=40, end=50, label=""), Instance(start=60, end=70, label="")]}
    found = figures_of({"one": (cells, density)}, late)
    assert found[1:] == (0, 1, 0, 2)
    listed = {"one": np.array([[60.0, 70], [0, 10], [40, 50]])}
    assert figures_of({"one": (cells, density)}, late, lists=listed)[1:] == (1, 1, 1, 2)


@pytest.mark.parametrize(("times", "share"), [(1, 1 / 25), (10, 10 / 25), (25, 1), (40, 1)])
def test_the_bar_is_lower_the_fewer_instances_it_rests_on(times, share):
    cells = np.array([[0.0, 10.0], [20.0, 30.0], [40.0, 50.0]]), np.array([0.9, 0.5, 0.2])
    two = [Instance(start=start, end=start + 10, label="") for start in (0, 20)]
    names = [f"video{number}" for number in range(times)]
    found = judging.calibration_of(dict.fromkeys(names, cells), dict.fromkeys(names, two))
    assert found.bar == pytest.approx(share * found.chance(np.array([0.5]))[0])


@pytest.mark.parametrize(
    ("happens", "well"),
    [([(0, 10), (20, 30)], True), ([(20, 30), (40, 50)], False), ([(0, 10), (40, 50)], False)],
)
def test_chances_are_shown_where_right_events_have_higher_ones(happens, well):
    """Of a right and a wrong event the right one must have the higher, in 70 % of pairs."""
    cells = np.array([[0.0, 10.0], [20.0, 30.0], [40.0, 50.0]]), np.array([0.9, 0.5, 0.2])
    truth = {"one": [Instance(start=start, end=end, label="") for start, end in happens]}
    assert judging.ranks_well({"one": cells}, truth, Calibration()) == well
    everything = [Instance(start=start, end=end, label="") for start, end in cells[0]]
    assert judging.ranks_well({"one": cells}, {"one": everything}, Calibration())


@pytest.mark.parametrize(
    ("found", "auc", "before", "better"),
    [
        (6, 40.0, 5, True),
        (4, 60.0, 5, False),
        (5, 60.0, 5, True),
        (5, 50.0, 5, False),
        (10, 60.0, 10, False),  # the list before finds everything
    ],
)
def test_a_model_is_better_where_a_person_is_shown_more(found, auc, before, better):
    known = {"first_right": 1, "videos": 3, "instances": 10}
    other = Figures(50.0, in_as_many=before, **known)
    assert Figures(auc, in_as_many=found, **known).better_than(other) == better


FOUND = {
    "own": Figures(57.5, first_right=3, videos=4, in_as_many=5, instances=10),
    "included": Figures(55.0, first_right=2, videos=4, in_as_many=6, instances=10),
    "motion": Figures(40.0, first_right=1, videos=4, in_as_many=3, instances=10),
    "tiles": Figures(2.0, first_right=0, videos=4, in_as_many=1, instances=10),
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {},
            "4 corrected videos, 10 instances, 2 labels. On your 4 corrected videos, each left out"
            " of learning in turn: of 10 events that happen, found by lists as long as there are: 5"
            " (before, by the included model, 6; by as many equal parts of each video 1); first"
            " event right in 3 of 4 videos (before 2). Your model is used.",
        ),
        ({"videos": 6}, "On your 6 corrected videos, each left out"),
        ({"videos": 6}, "first event right in 3 of 4 videos with events (before 2)"),
        ({"uses": "included"}, "Your model is not used yet."),
    ],
)
def test_what_is_said_of_a_round_are_the_counts_that_were_measured(change, said):
    facts = {"uses": "own", "videos": 4, "instances": 10, "labels": 2}
    learned = Learned(**{**facts, **change}, figures=FOUND, ranks=True, thresholds={})
    assert said in learned.sentence()
    assert "%" not in learned.sentence(), "an AUC is no share of what happens"


def test_folds_hold_out_each_video_once_and_share_those_with_instances(footage):
    videos, truth = footage
    for count in (2, 3, 7):
        many = [
            replace(videos[0], video=replace(videos[0].video, video_id=f"{n}", sha256=f"{n:064x}"))
            for n in range(count + 2)
        ]
        known = {f"{n}": truth["video0"] if n < count else () for n in range(count + 2)}
        folds = learning._folds(many, known)
        assert len(folds) == min(count, 3)
        held = [one.video.video_id for fold in folds for one in fold]
        assert sorted(held) == sorted(known)
        assert all(any(known[one.video.video_id] for one in fold) for fold in folds)


@pytest.mark.full
def test_a_forged_base_is_one_line(round_of_three, tmp_path):
    content = read_model(round_of_three[1] / "model.safetensors").value
    for change, said in (
        ({"mixture": [0.5]}, "mixture"),
        ({"mixture": [0.5, -1.0]}, "mixture"),
        ({"format": "other"}, "not a complete model"),
        ({"base": {}}, "without a base"),
        ({"density": None}, "either an evaluator or a density"),
    ):
        write_model(
            tmp_path / "model.safetensors", {**content, "base": {**content["base"], **change}}
        )
        with pytest.raises(InputError, match=said) as raised:
            load_bundle(tmp_path)
        assert "\n" not in str(raised.value)
