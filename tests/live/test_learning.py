"""Learning while a stream plays: labels known in time, scored first, resumed bitwise."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.live.learning import OnlineLearner, Ranking
from actionspan.live.proposing import OnlineProposer
from actionspan.live.settings import LearningSettings
from actionspan.temporal.labels import boundary_overlaps
from actionspan.temporal.networks import build_model
from actionspan.temporal.settings import TemporalSettings
from live.bundles import STEP, add, make_video, streaming_bundle
from tiers import first_tier

SETTINGS = LearningSettings(label_seconds=1.0, learning_window=24, learning_rate=0.003)


def acted(steps, seed=3):
    """Return a video whose features tell where instances are, and the instances."""
    features, times, motion = make_video(steps, seed)
    rng = np.random.default_rng(seed)
    starts = np.arange(4.0, times[-1] - 4, 9.0) + rng.uniform(
        0, 2, len(np.arange(4.0, times[-1] - 4, 9.0))
    )
    instances = np.stack([starts, starts + 3.0], axis=1)
    inside = ((instances[:, :1] <= times) & (times < instances[:, 1:])).any(axis=0)
    features["rgb"][inside] += 1.5
    return (features, times, motion), instances


def learned(instances, video, first=0, last=None, state=None, settings=SETTINGS):
    bundle = streaming_bundle()
    proposer = OnlineProposer(bundle)
    proposer.learner = OnlineLearner(bundle.temporal, instances, settings)
    if state is not None:
        proposer.load_state_dict(state)
    updates = add(proposer, video, first, last)
    return proposer, [each for update in updates for each in update.actionness]


@pytest.mark.full
def test_learning_finds_what_the_first_weights_do_not():
    video, instances = acted(500)
    proposer, _ = learned(instances, video)
    summary = proposer.learner.summary()
    assert summary["steps"] > 300
    assert summary["snippets"] > 450
    assert summary["actionness_auc"] > summary["actionness_auc_without_learning"] + 0.1


def test_a_snippet_is_scored_before_its_label_is_learned():
    """Labels that differ from some time on change nothing that was said until they are known."""
    video, instances = acted(300)
    changed = instances[instances[:, 1] < 40]
    _, first = learned(instances, video)
    _, second = learned(changed, video)
    gone = instances[len(changed), 0]
    for one, other in zip(first, second, strict=True):
        if one.seconds < gone:
            assert one == other
    assert first != second


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.5, 10)), max_size=6), st.floats(0, 80))
@example([(2.0, 0.5)], 3.0)  # the region of its start is as wide as a step
def test_what_is_known_depends_on_nothing_that_is_not_over(pairs, now):
    instances = np.array([(start, start + length) for start, length in pairs]).reshape(-1, 2)
    network = build_model("stream", 9, TemporalSettings(hidden=8, members=2))
    learner = OnlineLearner(network, instances, SETTINGS)
    known = learner.known_until(now, STEP)
    assert known <= now - SETTINGS.label_seconds
    over = instances[instances[:, 1] + SETTINGS.label_seconds <= now]
    until = np.arange(0.5, 40) * STEP
    until = until[until + STEP / 2 <= known]
    if len(until):
        everything = learner.labels(until, STEP)
        learner.instances = over
        assert np.array_equal(learner.labels(until, STEP)[:, :3], everything[:, :3])


def test_labels_are_those_of_the_whole_video():
    video, instances = acted(200)
    network = build_model("stream", 9, TemporalSettings(hidden=8, members=2))
    learner = OnlineLearner(network, instances, SETTINGS)
    times = video[1]
    whole = boundary_overlaps(instances, len(times) * STEP, steps=len(times))
    for first, last in ((0, 40), (33, 90), (150, 200)):
        found = learner.labels(times[first:last], STEP)[:, :3]
        assert np.allclose(found, whole[first:last], atol=1e-5)


def test_labels_follow_the_snippets_where_their_rate_changes():
    instances = np.array([[30.0, 34.0]])
    network = build_model("stream", 9, TemporalSettings(hidden=8, members=2))
    learner = OnlineLearner(network, instances, SETTINGS)
    times = np.concatenate([np.arange(80) * 0.3, 24 + np.arange(1, 41) * 0.9])
    labels = learner.labels(times, 0.3)
    inside = (times > 30.5) & (times < 33.5)
    outside = (times < 29) | (times > 35)
    assert labels[inside, 1].min() == 1
    assert labels[outside, 1].max() == 0


@pytest.mark.parametrize("late", first_tier([0.0, 1.0, 8.0, 20.0], 1.0))
def test_late_labels_are_learned_too(late):
    video, instances = acted(300)
    settings = LearningSettings(label_seconds=late, learning_window=24, learning_rate=0.003)
    proposer, _ = learned(instances, video, settings=settings)
    summary = proposer.learner.summary()
    assert summary["steps"] > 100
    assert summary["snippets"] > 290


def test_a_stream_shorter_than_the_window_is_learned():
    video, instances = acted(90)
    proposer, _ = learned(instances, video, settings=LearningSettings(learning_rate=0.003))
    assert proposer.learner.summary()["steps"] > 40


def test_nothing_before_a_short_stream_is_as_nothing_at_all():
    """A step on few rows, and one with a window of their number, change weights alike."""
    video, instances = acted(40)
    found = []
    for window in (24, 200):
        bundle = streaming_bundle()
        learner = OnlineLearner(
            bundle.temporal, instances, LearningSettings(learning_window=window)
        )
        proposer = OnlineProposer(bundle)
        rows = []
        proposer.learner = learner
        learner.add = lambda new, *_, rows=rows: rows.extend(new)
        add(proposer, video)
        learner._rows.extend(rows)
        learner._learn(24, video[1][: len(rows)], STEP)
        found.append([p.detach().clone() for p in bundle.temporal.parameters()])
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*found, strict=True))


@pytest.mark.full
def test_a_long_instance_is_learned_as_a_whole():
    video, _ = acted(300)
    instances = np.array([[20.0, 70.0]])  # six windows
    network_sees = []
    bundle = streaming_bundle()
    proposer = OnlineProposer(bundle)
    learner = proposer.learner = OnlineLearner(bundle.temporal, instances, SETTINGS)
    learn = learner._learn
    learner._learn = lambda end, times, interval: (
        network_sees.append(times[end - 24 : end].copy()) or learn(end, times, interval)
    )
    add(proposer, video)
    seen = np.unique(np.concatenate(network_sees))
    times = video[1]
    wanted = times[(times > 10) & (times < 75)]
    assert np.isin(wanted.round(6), seen.round(6)).all()


def test_a_state_goes_on_bitwise(tmp_path):
    video, instances = acted(150)
    whole, expected = learned(instances, video)
    before, first = learned(instances, video, last=90)
    state = copy.deepcopy(before.state_dict())
    after, second = learned(instances, video, first=90, state=state)
    assert first + second == expected
    assert after.learner.summary() == whole.learner.summary()
    weights = zip(
        whole.bundle.temporal.parameters(), after.bundle.temporal.parameters(), strict=True
    )
    assert all(torch.equal(one, other) for one, other in weights)


def test_a_gap_is_never_learned_across():
    video, instances = acted(120)
    bundle = streaming_bundle()
    proposer = OnlineProposer(bundle)
    learner = proposer.learner = OnlineLearner(bundle.temporal, instances, SETTINGS)
    add(proposer, video, last=60)
    steps = learner.steps
    assert steps > 0
    proposer.gap()
    add(proposer, video, first=60, last=80)  # fewer than a window
    assert learner.steps == steps


def test_only_a_network_that_streams_learns():
    network = build_model("cnn2", 9, TemporalSettings(hidden=8))
    with pytest.raises(InputError, match=r"temporal.models: \[stream\]"):
        OnlineLearner(network, np.zeros((0, 2)), SETTINGS)


@given(st.lists(st.tuples(st.integers(0, 999), st.booleans()), min_size=1, max_size=50))
def test_the_area_is_the_chance_that_a_positive_ranks_first(pairs):
    ranking = Ranking()
    for place, positive in pairs:
        ranking.add((place + 0.5) / 1000, positive)
    high = [place for place, positive in pairs if positive]
    low = [place for place, positive in pairs if not positive]
    if not (high and low):
        assert ranking.area is None
        return
    won = sum((a > b) + (a == b) / 2 for a in high for b in low)
    assert ranking.area == pytest.approx(won / (len(high) * len(low)))
