"""Loudness against theory: a sine of amplitude a has the level 20 log10(a / √2)."""

import math

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.video.sound import FLOOR, RATE, at_snippets, change, in_parts, sound_curves
from video.numbered import encode
from worlds.sounds import write_tone

AMPLITUDES = (0.5, 0.05, 0.25, 0.0)  # a second each


def level(amplitude):
    return max(20 * math.log10(amplitude / math.sqrt(2)), FLOOR) if amplitude else FLOOR


@pytest.mark.parametrize("layout", ["mono", "stereo"])
@pytest.mark.parametrize("rate", [8000, 44_100, 48_000])
@pytest.mark.parametrize(
    ("codec", "suffix", "near"),
    [("aac", "mp4", 0.3), ("aac", "mkv", 0.3), ("pcm_s16le", "mov", 0.01)],
)
def test_levels_of_a_sine_are_those_of_theory(tmp_path, codec, suffix, near, rate, layout):
    how = {"codec": codec, "rate": rate, "layout": layout, "fps": 5}
    curves = sound_curves(write_tone(tmp_path / f"a.{suffix}", AMPLITUDES, **how), 4.0)
    assert curves.shape == (4 * RATE, 2)
    for second, amplitude in enumerate(AMPLITUDES):
        inside = curves[second * RATE + 5 : (second + 1) * RATE - 5, 0]  # AAC rings at a step
        np.testing.assert_allclose(inside, level(amplitude), atol=near)


@pytest.mark.parametrize(("codec", "suffix"), [("aac", "mp4"), ("pcm_s16le", "mkv")])
@pytest.mark.parametrize("late", [0.2, 0.52])
def test_sound_that_begins_late_is_late_in_the_curve(tmp_path, codec, suffix, late):
    path = write_tone(tmp_path / f"a.{suffix}", (0.5, 0.05), codec=codec, seconds=2.0, late=late)
    curves = sound_curves(path, 2.0)
    begins, step = round(late * RATE), round((1 + late) * RATE)
    if codec != "aac":  # whose encoder begins with a faint echo of what follows
        assert np.isnan(curves[:begins, 0]).all()
        np.testing.assert_allclose(curves[begins:step, 0], level(0.5), atol=0.01)
        np.testing.assert_allclose(curves[step:, 0], level(0.05), atol=0.01)
    assert np.nanargmin(curves[begins + 2 :, 1]) + begins + 2 == step
    assert curves[step, 1] == pytest.approx(-20, abs=1.0)


def test_a_video_without_sound_has_no_level(tmp_path):
    silent = encode(tmp_path / "silent.mp4", 10)
    assert np.isnan(sound_curves(silent, 4.0)).all()
    assert np.isnan(sound_curves(tmp_path / "none.mp4", 4.0)).all()


def test_damaged_sound_keeps_what_can_be_decoded(tmp_path):
    path = write_tone(tmp_path / "a.mkv", AMPLITUDES)
    with av.open(str(path)) as source:
        places = [(p.pos, p.size) for p in source.demux(source.streams.audio[0]) if p.size]
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for place, size in places[60:80]:
        content[place + 12 : place + size] = rng.bytes(size - 12)
    path.write_bytes(content)
    curves = sound_curves(path, 4.0)
    np.testing.assert_allclose(curves[5:20, 0], level(0.5), atol=0.3)
    np.testing.assert_allclose(curves[55:70, 0], level(0.25), atol=0.5)


def slow_change(loudness):
    found = []
    for k in range(len(loudness)):
        before = [x for x in loudness[max(k - 12, 0) : k] if math.isfinite(x)]
        after = [x for x in loudness[k : k + 12] if math.isfinite(x)]
        found.append(np.mean(after) - np.mean(before) if before and after else math.nan)
    return np.array(found)


LOUDNESS = st.lists(st.floats(-90, 0) | st.just(math.nan), max_size=60).map(np.array)


@given(LOUDNESS)
def test_change_is_the_half_second_after_minus_that_before(loudness):
    loudness = loudness.astype(float)
    np.testing.assert_allclose(change(loudness), slow_change(loudness), atol=1e-9)


@given(LOUDNESS, st.integers(1, 20))
def test_parts_have_the_mean_of_their_levels(loudness, parts):
    curves = np.stack([loudness, -loudness], axis=1).astype(np.float32).reshape(-1, 2)
    seconds = max(len(curves), 1) / RATE
    found = in_parts(curves, seconds, parts)
    for part in range(parts):
        own = [
            float(x)
            for k, x in enumerate(curves[:, 0])
            if math.isfinite(x) and (2 * k + 1) * parts // (2 * len(curves)) == part
        ]
        expected = np.mean(own) if own else math.nan
        np.testing.assert_allclose(found[part], [expected, -expected], rtol=1e-5, atol=1e-6)


@given(LOUDNESS, st.integers(1, 30), st.floats(0.04, 0.5))
def test_snippets_always_have_finite_numbers(loudness, snippets, step):
    curves = np.stack([loudness, change(loudness.astype(float))], axis=1).astype(np.float32)
    rows = at_snippets(curves, (np.arange(snippets) + 0.5) * step)
    assert rows.shape == (snippets, 2)
    assert np.isfinite(rows).all()


def test_snippets_have_the_levels_around_them():
    curves = np.stack([np.arange(50.0), np.zeros(50)], axis=1).astype(np.float32)
    times = (np.arange(10) + 0.5) * 0.2  # five levels each
    np.testing.assert_allclose(at_snippets(curves, times)[:, 0], 5 * np.arange(10) + 2, atol=1e-4)


def test_the_levels_of_a_day_are_as_exact_as_the_first():
    curves = np.full((24 * 3600 * RATE, 2), -31.7, np.float32)
    np.testing.assert_allclose(in_parts(curves, 24 * 3600, 2000), -31.7, rtol=1e-6)
