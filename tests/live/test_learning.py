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

STEPS = 80


def settings(late=1.0, window=24):
    return LearningSettings(label_seconds=late, learning_window=window, learning_rate=0.003)


def acted(steps, seed=3):
    """Return a video whose features tell where instances are, and the instances."""
    features, times, motion = make_video(steps, seed)
    starts = np.arange(4.0, times[-1] - 4, 9.0)
    starts += np.random.default_rng(seed).uniform(0, 2, len(starts))
    instances = np.stack([starts, starts + 3.0], axis=1)
    inside = ((instances[:, :1] <= times) & (times < instances[:, 1:])).any(axis=0)
    features["rgb"][inside] += 1.5
    return (features, times, motion), instances


def learning(instances, chosen=None):
    bundle = streaming_bundle()
    proposer = OnlineProposer(bundle)
    proposer.learner = OnlineLearner(bundle.temporal, instances, chosen or settings())
    return proposer


def said(proposer, video, first=0, last=None):
    return [each for update in add(proposer, video, first, last) for each in update.actionness]


def small(instances):
    network = build_model("stream", 9, TemporalSettings(hidden=8, members=2))
    return OnlineLearner(network, instances, settings())


@pytest.fixture(scope="module")
def learned():
    """A video, its instances, a proposer that has learned them, and what it said."""
    torch.set_num_threads(1)
    video, instances = acted(STEPS)
    proposer = learning(instances)
    return video, instances, proposer, said(proposer, video)


@pytest.mark.full
def test_learning_finds_what_the_first_weights_do_not():
    video, instances = acted(500)
    proposer = learning(instances)
    add(proposer, video)
    summary = proposer.learner.summary()
    assert summary["steps"] > 300
    assert summary["snippets"] > 450
    assert summary["actionness_auc"] > summary["actionness_auc_without_learning"] + 0.1


def test_a_snippet_is_scored_before_its_label_is_learned(learned):
    """Labels that differ from some time on change nothing that was said until they are known."""
    video, instances, _, first = learned
    changed = instances[instances[:, 1] < 10]
    second = said(learning(changed), video)
    gone = instances[len(changed), 0]
    early = [each.seconds < gone for each in first]
    assert sum(early) > 30
    assert [one for one, kept in zip(first, early, strict=True) if kept] == second[: sum(early)]
    assert first != second


def test_a_state_goes_on_bitwise(learned):
    video, instances, whole, expected = learned
    before, after = learning(instances), learning(instances)
    first = said(before, video, last=60)
    after.load_state_dict(copy.deepcopy(before.state_dict()))
    assert first + said(after, video, first=60) == expected
    summary = after.learner.summary()
    assert summary == whole.learner.summary()
    assert summary["steps"] > STEPS / 2
    parameters = (each.bundle.temporal.parameters() for each in (whole, after))
    assert all(torch.equal(one, other) for one, other in zip(*parameters, strict=True))


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.5, 10)), max_size=6), st.floats(0, 80))
@example([(2.0, 0.5)], 3.0)  # the region of its start is as wide as a step
def test_what_is_known_depends_on_nothing_that_is_not_over(pairs, now):
    instances = np.array([(start, start + length) for start, length in pairs]).reshape(-1, 2)
    learner = small(instances)
    known = learner.known_until(now, STEP)
    assert known <= now - 1.0
    until = np.arange(0.5, 40) * STEP
    until = until[until + STEP / 2 <= known]
    if len(until):
        everything = learner.labels(until, STEP)
        learner.instances = instances[instances[:, 1] + 1.0 <= now]
        assert np.array_equal(learner.labels(until, STEP)[:, :3], everything[:, :3])


def test_labels_are_those_of_the_whole_video():
    (_, times, _), instances = acted(200)
    whole = boundary_overlaps(instances, len(times) * STEP, steps=len(times))
    for first, last in ((0, 40), (33, 90), (150, 200)):
        found = small(instances).labels(times[first:last], STEP)[:, :3]
        assert np.allclose(found, whole[first:last], atol=1e-5)


def test_labels_follow_the_snippets_where_their_rate_changes():
    times = np.concatenate([np.arange(80) * 0.3, 24 + np.arange(1, 41) * 0.9])
    labels = small(np.array([[30.0, 34.0]])).labels(times, 0.3)
    assert labels[(times > 30.5) & (times < 33.5), 1].min() == 1
    assert labels[(times < 29) | (times > 35), 1].max() == 0


LATE = [*((300, late, 24, 100) for late in (0.0, 8.0, 20.0)), SHORT := (60, 2.0, 128, 15)]


@pytest.mark.parametrize(("steps", "late", "window", "least"), first_tier(LATE, SHORT))
def test_late_labels_and_a_stream_shorter_than_the_window_are_learned(steps, late, window, least):
    video, instances = acted(steps)
    proposer = learning(instances, settings(late, window))
    add(proposer, video)
    summary = proposer.learner.summary()
    assert summary["steps"] > least
    assert summary["snippets"] > steps - 10


def test_nothing_before_a_short_stream_is_as_nothing_at_all():
    """A step on few rows, and one with a window of their number, change weights alike."""
    video, instances = acted(40)
    found = []
    for window in (24, 200):
        proposer, rows = learning(instances, settings(window=window)), []
        learner = proposer.learner
        learner.add = lambda new, *_, rows=rows: rows.extend(new)
        add(proposer, video)
        learner._rows.extend(rows)
        learner._learn(24, video[1][: len(rows)], STEP)
        found.append([each.detach().clone() for each in proposer.bundle.temporal.parameters()])
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*found, strict=True))


@pytest.mark.full
def test_a_long_instance_is_learned_as_a_whole():
    """It is six windows long."""
    video, _ = acted(300)
    proposer, seen = learning(np.array([[20.0, 70.0]])), []
    learn = proposer.learner._learn
    proposer.learner._learn = lambda end, times, interval: (
        seen.extend(times[end - 24 : end].round(6)) or learn(end, times, interval)
    )
    add(proposer, video)
    wanted = video[1][(video[1] > 10) & (video[1] < 75)]
    assert set(wanted.round(6)) <= set(seen)


def test_a_gap_is_never_learned_across():
    video, instances = acted(60)
    proposer = learning(instances)
    add(proposer, video, last=40)
    steps = proposer.learner.steps
    assert steps > 0
    proposer.gap()
    add(proposer, video, first=40, last=55)  # fewer than are learned from
    assert proposer.learner.steps == steps


def test_only_a_network_that_streams_learns():
    network = build_model("cnn2", 9, TemporalSettings(hidden=8))
    with pytest.raises(InputError, match=r"temporal.models: \[stream\]"):
        OnlineLearner(network, np.zeros((0, 2)), settings())


@given(st.lists(st.tuples(st.integers(0, 999), st.booleans()), min_size=1, max_size=50))
def test_the_area_is_the_chance_that_a_positive_ranks_first(pairs):
    ranking = Ranking()
    for place, positive in pairs:
        ranking.add((place + 0.5) / 1000, positive)
    high, low = ([place for place, positive in pairs if positive == kind] for kind in (True, False))
    if not (high and low):
        assert ranking.area is None
        return
    won = sum((a > b) + (a == b) / 2 for a in high for b in low)
    assert ranking.area == pytest.approx(won / (len(high) * len(low)))
