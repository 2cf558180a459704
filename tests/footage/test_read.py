"""Every command reads the right frames of every file of the table in `footage`.

A container has its own idea of time: where the first frame begins, to what times are rounded,
where a seek ends, and which rate it states. Each picture shows its number.
"""

import threading

import numpy as np
import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.dataset.completing import complete
from actionspan.dataset.matching import IndexSettings, index_videos
from actionspan.dataset.timeline import read_timeline
from actionspan.dataset.video_facts import probe_video
from actionspan.features.external import row_times
from actionspan.features.settings import ExternalSettings
from actionspan.live.settings import parse_source
from actionspan.live.source import FileFrames
from actionspan.video.decode import read_frames
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import snippets
from actionspan.video.thumbnails import read_thumbnails
from footage import events_of
from video.numbered import read_number

ROUNDING = 1.1e-3  # seconds: containers in milliseconds


def test_the_timeline_is_that_of_the_frames(made):
    path, row = made
    np.testing.assert_allclose(read_timeline(path).seconds, row.seconds, atol=ROUNDING)


def test_every_frame_is_decoded_once_at_its_time_by_either_decoder(made):
    path, row = made
    numbers, times = [], []
    for ours, theirs in zip(read_frames(path), read_frames(path, decoder="decord"), strict=True):
        picture = ours.picture()
        numbers.append(read_number(picture))
        times.append(ours.seconds)
        assert ours.seconds == theirs.seconds
        np.testing.assert_array_equal(picture, theirs.picture())
    assert numbers == list(range(len(row.seconds)))
    np.testing.assert_allclose(times, row.seconds, atol=ROUNDING)


def test_snippets_have_the_times_of_their_frames(made):
    path, row = made
    cut = list(snippets(path, FrameSettings(short_side=64, still=False)))
    size = FrameSettings().snippet_frames
    centres = list(range(size // 2, len(row.seconds), size))
    assert [read_number(one.rgb) for one in cut] == centres
    np.testing.assert_allclose(
        [one.seconds for one in cut], np.take(row.seconds, centres), atol=ROUNDING
    )


@pytest.mark.parametrize("early", [0.0, 0.3])
def test_pictures_are_those_that_are_shown_at_a_time(made, early):
    """A key frame up to `early` seconds before serves too."""
    path, row = made
    wanted = [(start, first) for start, _, first, _ in events_of(row.seconds)]
    found = read_thumbnails(path, [start for start, _ in wanted], 64, early)
    # frames: AVI and MPEG-PS have no times but those of decoding
    most = (6 if early else 3) if path.suffix in (".mpg", ".avi") else 0
    for one, (_, first) in zip(found, wanted, strict=True):
        assert one.rgb.shape == (64, 128, 3)
        number = read_number(one.rgb)
        assert row.seconds[number] == pytest.approx(one.seconds, abs=most / 30 + ROUNDING)
        assert number <= first + most
        assert row.seconds[number] >= row.seconds[first] - early - most / 30 - ROUNDING


def test_the_facts_of_a_file(made):
    path, row = made
    video = probe_video(path, checksum=False)
    assert (video.error, video.frames) == ("", len(row.seconds))
    assert video.variable == (row.rate in ("falling", "gap", "jitter"))
    steps = np.diff(row.seconds)
    assert row.seconds[-1] < video.duration_seconds <= row.seconds[-1] + 1.5 * steps.max()


def test_frames_of_a_tool_are_those_of_the_file(made, tmp_path):
    path, row = made
    first, last = 7, len(row.seconds) - 4
    boxes = "".join(
        f'<box frame="{frame}" outside="{outside}" keyframe="1"/>'
        for frame, outside in ((first, 0), (last, 1))
    )
    task = f"<meta><task><id>1</id><source>{path.name}</source></task></meta>"
    file = tmp_path / "cvat.xml"
    file.write_text(
        f'<annotations><version>1.1</version>{task}<track id="0" label="jump">{boxes}</track>'
        "</annotations>"
    )
    wanted = pytest.approx((row.seconds[first], row.seconds[last]), abs=ROUNDING)
    reading = read_annotation_file(file)
    complete(reading, path.parent)
    ((start, end, _),) = reading.records[0].parsed()
    assert (start, end) == wanted
    # in a run
    video = probe_video(path, checksum=False)
    index = index_videos([video], read_annotation_file(file), IndexSettings())
    ((instance,),) = [one.instances for one in index.annotations]
    assert (instance.start, instance.end) == wanted


def test_features_of_others_are_at_the_times_of_their_frames(made):
    path, row = made
    numbers = range(3, len(row.seconds), 5)
    settings = ExternalSettings(stride=5, offset=3)
    times = row_times(len(numbers), probe_video(path, checksum=False), settings)
    np.testing.assert_allclose(times, np.take(row.seconds, numbers), atol=ROUNDING)


def test_a_stream_of_a_file_has_the_times_of_its_frames(made):
    path, row = made
    (stretch,) = FileFrames(parse_source(str(path))).stretches(threading.Event())
    np.testing.assert_allclose([one.seconds for one in stretch], row.seconds, atol=ROUNDING)
