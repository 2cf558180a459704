"""Which videos browsers play, and copies that they do.

Counted on is what Chromium, Firefox and Safari share by their documentation: H.264 of 8 bits and
4:2:0 in MP4, VP8 and VP9 in WebM, AV1 in both (in Safari where the machine has a decoder). They
turn a rotated video upright. Tried in Chromium 150, which plays more: Matroska, H.264 of 10 bits.
"""

import math
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import av
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.container import OutputContainer
from av.video.frame import PictureType, VideoFrame

from actionspan.dataset.containers import open_container, opened, turned_sideways
from actionspan.dataset.playlists import is_playlist, read_parts
from actionspan.dataset.timeline import read_timeline, readable
from actionspan.errors import InputError, counted
from actionspan.storage.writing import atomic_path
from actionspan.video.decode import Frame, read_frames, resized
from actionspan.video.settings import CopySettings

_NAMES = {
    "h264": "H.264",
    "hevc": "H.265",
    "mpeg4": "MPEG-4 ASP",
    "mpeg2video": "MPEG-2",
    "mjpeg": "Motion JPEG",
}
_CODECS = {"mp4": ("h264", "vp9", "av1"), "webm": ("vp8", "vp9", "av1")}
_BITS = {"h264": 8}  # of the others 10
_TICK = Fraction(1, 90_000)  # seconds: of time stamps in a copy
_RATE, _SAMPLES = 48_000, 1024  # of sound: a second, and in a frame of AAC
_ENCODER = "libx264"


def playback_fault(path: Path) -> str:
    """Return why not every browser plays a file as we see it; an empty text where all should.

    Raises:
        InputError: It is not a video.
    """
    if is_playlist(path):
        with readable(path):
            return f"{counted(len(read_parts(path)), 'file')}, one after the other"
    with readable(path), opened(path) as (container, stream):
        codec, pixels = stream.codec.canonical_name, stream.format
        kind = "mp4" if "mp4" in container.format.name else container.format.name
        others = len(container.streams.video)
        first = container.streams.video[0].index == stream.index
        late = float((stream.start_time or 0) * (stream.time_base or 0))
        frame = 1 / float(stream.average_rate or 25)
    if kind == "matroska,webm":
        with path.open("rb") as file:
            kind = "webm" if b"webm" in file.read(64) else "Matroska"
    name = _NAMES.get(codec, codec.upper())
    if kind not in _CODECS:
        return f"{name} in {kind if kind[0].isupper() else kind.upper()}"
    if codec not in _CODECS[kind]:
        return f"{name} in {'MP4' if kind == 'mp4' else 'WebM'}"
    parts = pixels.components if pixels is not None else ()
    bits = max((part.bits for part in parts), default=8)
    if bits > _BITS.get(codec, 10):
        return f"{name} of {bits} bits"
    if pixels is not None and "420" not in pixels.name:
        return f"{name} in {pixels.name}"
    if not first:
        return f"a browser plays another of its {others} video streams"
    # we count from the first frame, browsers from the file's own zero
    return f"its frames begin {late:.2f} s late" if late > frame / 2 else ""


def write_playable(
    path: Path,
    out: Path,
    settings: CopySettings | None = None,
    on_progress: Callable[[float], None] = lambda seconds: None,
) -> str:
    """Write a copy of a video that browsers play: H.264 in MP4, upright, with square pixels.

    Frames keep their times, so that proposals fit the copy. It has a key frame in each second, its
    index comes first, and sound is AAC. Where decoding breaks off the copy ends. `on_progress` is
    called once a second of video, with the seconds that are done.

    Returns:
        Why it ends early; an empty text where it is whole.

    Raises:
        InputError: No frame of the file can be decoded, or FFmpeg has no encoder for H.264 here.
    """
    # 1. the first frame, which gives the shape
    settings = settings or CopySettings()
    if _ENCODER not in av.codecs_available:
        raise InputError(f"PyAV has no encoder {_ENCODER} here; the wheel of pip install av has it")
    with suppress(OSError, ValueError, av.FFmpegError, InputError):  # then it is encoded
        if is_playlist(path) and _copied(path, out):
            return ""
    timeline = read_timeline(path)
    broken: list[str] = []
    frames = _until_damaged(read_frames(path), broken.append)
    first = next(frames, None)
    if first is None:
        raise InputError((broken or [f"{path}: the video stream has no frame"])[0])
    shape = _size(path, first, settings.short_side)
    with (
        atomic_path(out) as partial,
        closing(_sound(path, 0.0 if math.isnan(timeline.origin) else timeline.origin)) as sound,
        av.open(str(partial), "w", format="mp4", options={"movflags": "+faststart"}) as file,
    ):
        # 2. a stream of frames, one of sound if there is any
        video = _video_stream(file, shape, timeline.step, settings)
        part = next(sound, None)
        audio = None if part is None else file.add_stream("aac", rate=_RATE, layout="stereo")
        if audio is not None:
            audio.bit_rate = 96_000
        # 3. each frame at its time, after the sound before it
        last, key = -1, 0.0
        for frame in chain([first], frames):
            while part is not None and audio is not None and (part.time or 0.0) <= frame.seconds:
                file.mux(audio.encode(part))
                part = next(sound, None)
            stamp = round(frame.seconds / _TICK)
            if stamp <= last:  # its time was there before
                continue
            picture = VideoFrame.from_ndarray(resized(frame.picture(), shape), format="rgb24")
            picture.pts, picture.time_base, last = stamp, _TICK, stamp
            if frame.seconds >= key:
                picture.pict_type, key = PictureType.I, math.floor(frame.seconds) + 1.0
                on_progress(frame.seconds)
            file.mux(video.encode(picture))
        file.mux(video.encode(None))
        if audio is not None:
            file.mux(audio.encode(None))
    return broken[0] if broken else ""


def _copied(path: Path, out: Path) -> bool:
    """Copy the packets of a recording if browsers play its files; return whether they do."""
    heads = set()
    for part in read_parts(path):
        if playback_fault(part.path):
            return False
        with opened(part.path) as (_, stream):
            heads.add((stream.codec.canonical_name, stream.codec_context.extradata))
    if len(heads) > 1 or heads.pop()[0] != "h264":
        return False
    with (
        open_container(path) as source,
        atomic_path(out) as partial,
        av.open(str(partial), "w", format="mp4", options={"movflags": "+faststart"}) as file,
    ):
        found: list[Any] = [source.streams.best("video"), source.streams.best("audio")]
        copies = {one: file.add_stream_from_template(one) for one in found if one is not None}
        reached = dict.fromkeys(copies, -math.inf)
        for packet in source.demux(list(copies)):
            if packet.dts is not None and packet.dts > reached[packet.stream]:
                reached[packet.stream] = packet.dts
                packet.stream = copies[packet.stream]
                file.mux(packet)
    return True


def _until_damaged(frames: Iterator[Frame], report: Callable[[str], None]) -> Iterator[Frame]:
    """Yield frames up to an error, which is reported."""
    try:
        yield from frames
    except InputError as error:
        report(str(error))


def _size(path: Path, first: Frame, short_side: int) -> tuple[int, int]:
    """Return the height and width of a copy: even, pixels square, never enlarged."""
    height, width = map(float, first.picture().shape[:2])
    with readable(path), opened(path) as (_, stream):
        stretch = float(stream.sample_aspect_ratio or 1)
        if turned_sideways(path, stream.id):
            height *= stretch
        else:
            width *= stretch
    scale = min(1.0, short_side / min(height, width))
    return 2 * max(1, round(height * scale / 2)), 2 * max(1, round(width * scale / 2))


def _video_stream(
    file: OutputContainer, shape: tuple[int, int], step: float, settings: CopySettings
) -> Any:
    options = {"preset": "veryfast", "profile": "main", "crf": str(settings.quality), "bf": "0"}
    rate = Fraction(1 / step).limit_denominator(1001) or Fraction(1)
    stream: Any = file.add_stream(_ENCODER, rate=rate, options={**options, "forced-idr": "1"})
    stream.height, stream.width = shape
    stream.pix_fmt = "yuv420p"
    stream.codec_context.time_base = _TICK
    stream.codec_context.gop_size = 10_000  # key frames are set by their times
    stream.codec_context.thread_count = 1
    return stream


def _sound(path: Path, origin: float) -> Generator[AudioFrame, None, None]:
    """Yield a file's sound as AAC takes it, timed as the frames are, while it can be decoded."""
    with (
        suppress(OSError, ValueError, av.FFmpegError, InputError),
        open_container(path) as container,
    ):
        stream: Any = container.streams.best("audio")
        if stream is None or stream.codec_context is None:
            return
        resampler = AudioResampler(format="fltp", layout="stereo", rate=_RATE, frame_size=_SAMPLES)
        frames: Iterator[Any] = chain(container.decode(stream), [None])
        last = -1
        for frame in frames:
            for piece in resampler.resample(frame):
                piece.pts = (piece.pts or 0) - round(origin * _RATE)
                if piece.pts > last:  # a file's sound may last into the next file's
                    last = piece.pts
                    yield piece
