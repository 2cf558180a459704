"""Proposals of a stream: equal to the whole video's curves, causal, final, bounded, resumable."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.settings import EncoderSettings
from actionspan.features.transform import transform_features
from actionspan.live.proposing import OnlineProposer, Update
from actionspan.temporal.networks import build_model
from actionspan.temporal.prediction import predict_probabilities
from actionspan.temporal.settings import TemporalSettings
from live.bundles import STEP, add, make_video, streaming_bundle
from tiers import first_tier


@pytest.fixture
def bundle():
    return streaming_bundle()


@pytest.fixture
def video():
    return make_video(70)


def everything(updates):
    actionness = [each for update in updates for each in update.actionness]
    curves = [(each.start, each.action, each.end) for each in actionness]
    return actionness, curves, [each for update in updates for each in update.proposals]


def offline(bundle, video):
    features, times, motion = video
    curves = {key: curve.astype(np.float32) for key, curve in motion.items()}
    rows = transform_features(features, times, len(times) * STEP, bundle.transform, curves)
    return predict_probabilities(bundle.temporal, rows)


@pytest.mark.parametrize("steps", [1, 2, 3, 9, 70])
def test_actionness_is_that_of_the_whole_video_at_its_look_ahead(bundle, steps):
    video, proposer = make_video(steps), OnlineProposer(bundle)
    assert proposer.look_ahead == 2
    updates = add(proposer, video)
    assert [len(update.actionness) for update in updates] == [0, 0, *[1] * 68][:steps]
    found, curves, _ = everything([*updates, proposer.finish(steps * STEP)])
    assert [each.snippet for each in found] == list(range(steps))
    np.testing.assert_array_equal([each.seconds for each in found], video[1])
    np.testing.assert_allclose(curves, offline(bundle, video), atol=1e-6)


def test_a_model_of_motion_alone_streams_without_labels(bundle):
    torch.manual_seed(5)
    network = build_model("stream", 1 + 2 * 2, TemporalSettings(hidden=64, members=2))
    past = replace(bundle.transform.past, mean=np.zeros(2), deviation=np.ones(2))
    alone = replace(
        bundle,
        transform=replace(bundle.transform, streams={}, past=past),
        classified=replace(bundle.classified, streams={}),
        temporal=network.eval(),
    )
    video, proposer = ({}, *make_video(70)[1:]), OnlineProposer(alone)
    _, curves, proposals = everything([*add(proposer, video), proposer.finish(70 * STEP)])
    np.testing.assert_allclose(curves, offline(alone, video), atol=1e-6)
    assert proposals
    assert not any(each.label for each in proposals)


def test_what_is_given_depends_on_nothing_later(bundle, video):
    features, times, motion = video
    other = make_video(70, seed=2)
    mixed, moved = (
        {key: np.concatenate([known[key][:40], new[key][40:]]) for key in known}
        for known, new in ((features, other[0]), (motion, other[2]))
    )
    first, second = (
        add(OnlineProposer(bundle), each, last=40) for each in (video, (mixed, times, moved))
    )
    assert first == second


def test_proposals_come_once_within_the_delay_and_inside_the_video(bundle, video):
    proposer = OnlineProposer(bundle)
    updates = add(proposer, video)
    for time, update in zip(video[1], updates, strict=True):
        for each in update.proposals:
            assert 0 <= each.start < each.end <= time + STEP / 2 - 2 * STEP
            assert time + STEP / 2 - each.end <= 2.0 + 1e-6
            assert each.label in ("jump", "run")
            assert 0.5 <= each.label_score <= 1
        scores = [each.score for each in update.proposals]
        assert scores == sorted(scores, reverse=True)
    *_, proposals = everything([*updates, proposer.finish(70 * STEP)])
    assert len(proposals) > 20
    assert len({(each.start, each.end) for each in proposals}) == len(proposals)
    assert max(each.end for each in proposals) <= 70 * STEP


def test_a_short_delay_waits_for_what_the_density_sees(bundle, video):
    updates = add(OnlineProposer(bundle, delay_seconds=0.0), video)
    delays = [
        time + STEP / 2 - each.end
        for time, update in zip(video[1], updates, strict=True)
        for each in update.proposals
    ]
    assert min(delays) >= 3.5 * STEP - 1e-6
    assert max(delays) <= 4.5 * STEP + 1e-6


def test_nothing_crosses_a_gap(bundle, video):
    proposer, end = OnlineProposer(bundle), 70 * STEP + 5.0
    before = [*add(proposer, video, last=30), proposer.gap()]
    later = (video[0], video[1] + 5.0, video[2])
    after = [*add(proposer, later, first=30), proposer.finish(end)]
    actionness, _, proposals = everything([*before, *after])
    assert [each.snippet for each in actionness] == list(range(70))
    for each in proposals:
        assert each.end <= 30 * STEP + 1e-6 or each.start >= 30 * STEP + 5.0 - STEP - 1e-6
    # each side is what it would be alone
    alone = OnlineProposer(bundle)
    assert [*add(alone, video, last=30), alone.gap()] == before
    new = OnlineProposer(bundle)
    second, *_ = everything([*add(new, later, first=30), new.finish(end)])
    rest, *_ = everything(after)
    assert [replace(each, snippet=each.snippet + 30) for each in second] == rest


def test_a_gap_at_once_or_twice_gives_nothing(bundle):
    proposer = OnlineProposer(bundle)
    assert [proposer.gap(), proposer.gap(), proposer.finish(0.0)] == [Update()] * 3


@pytest.mark.parametrize("at", first_tier([0, 1, 25, 60], 25))
def test_a_state_goes_on_bitwise(bundle, video, at):
    proposer, other = OnlineProposer(bundle), OnlineProposer(bundle)
    add(proposer, video, last=at)
    other.load_state_dict(pickle.loads(pickle.dumps(proposer.state_dict())))
    assert add(proposer, video, first=at) == add(other, video, first=at)
    assert proposer.finish(70 * STEP) == other.finish(70 * STEP)


@pytest.mark.full
def test_memory_does_not_grow(bundle):
    proposer, video, sizes = OnlineProposer(bundle), make_video(400), []
    for k in range(400):
        add(proposer, video, first=k, last=k + 1)
        sizes.append(len(pickle.dumps(proposer.state_dict())))
    assert max(sizes[300:]) <= 1.2 * max(sizes[100:200])


def test_a_model_of_whole_videos_is_refused_by_a_line_that_says_what_to_train(bundle):
    span = build_model("span", 20, TemporalSettings(hidden=16))
    clips = EncoderSettings(clip_encoder="i3d")
    for changed, message in (
        ({"temporal": span}, r"^the model span sees .*temporal\.models: \[stream\]$"),
        ({"transform": replace(bundle.transform, past=None)}, r"temporal\.models: \[stream\]$"),
        ({"density": None}, r"temporal\.models: \[stream\]$"),
        ({"encoders": clips}, "clip_encoder: none$"),
    ):
        with pytest.raises(InputError, match=message):
            OnlineProposer(replace(bundle, **changed))
    with pytest.raises(InputError, match="delay"):
        OnlineProposer(bundle, delay_seconds=-1.0)


def test_wrong_snippets_are_refused(bundle, video):
    proposer = OnlineProposer(bundle)
    add(proposer, video, last=2)
    features = {key: rows[2] for key, rows in video[0].items()}
    motion = {key: 0.1 for key in video[2]}
    with pytest.raises(ValueError, match="not behind"):
        proposer.add(features, 0.1, motion)
    with pytest.raises(ValueError, match="streams are rgb"):
        proposer.add({"rgb": features["rgb"]}, 9.0, motion)
