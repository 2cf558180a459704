"""Video files as FFmpeg opens them: one file, in a container of video, by a decoder that exists.

FFmpeg takes a file for what its content says. Left to itself it would read a text named `.mp4` as a
playlist, decode the files that it lists in its place, and open addresses.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from actionspan.dataset.containers import claimed_samples, codec_tag
from actionspan.errors import InputError

FORMATS = (
    # containers by the names of FFmpeg's demuxers; none of these opens another file
    *("mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "avi", "asf", "flv", "live_flv", "kux"),
    *("mpegts", "mpeg", "mxf", "ogg", "nut", "rm", "wtv", "dv", "gxf", "lxf", "nsv", "ty", "pva"),
    *("dhav", "ifv", "ivf", "ivr", "mlv", "cine", "r3d", "amv", "swf", "gif", "apng", "flic"),
    # and streams without one
    *("h261", "h263", "h264", "hevc", "vvc", "av1", "obu", "m4v", "mpegvideo", "mjpeg"),
    *("mjpeg_2000", "vc1", "vc1test", "dirac", "dnxhd", "cavsvideo", "avs2", "avs3"),
    *("yuv4mpegpipe", "apv", "evc"),
)
_OPTIONS = {"format_whitelist": ",".join(FORMATS), "protocol_whitelist": "file"}


@contextmanager
def opened(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open a file and its video stream with PyAV.

    Raises:
        InputError: It is in no container of video, claims an impossible number of samples, or has
            no video stream that can be decoded.
        OSError: The file cannot be read (av.FFmpegError: not by FFmpeg).
    """
    with open_container(path) as container:
        stream: Any = container.streams.best("video")
        if stream is None or stream.disposition & stream.disposition.attached_pic:
            raise InputError(f"{path}: no video stream")
        if stream.codec_context is None:
            raise InputError(f"{path}: {_no_decoder(codec_tag(path, stream.id))}")
        yield container, stream


def open_container(path: Path) -> InputContainer:
    """Open a file with PyAV, whatever streams it has.

    Raises:
        InputError: It is in no container of video, or claims an impossible number of samples.
        OSError: The file cannot be read (av.FFmpegError: not by FFmpeg).
    """
    samples, size = claimed_samples(path), path.stat().st_size
    if samples > size:  # FFmpeg would take 24 bytes of memory for each
        raise InputError(f"{path}: damaged: its index has {samples} samples, in {size} bytes")
    try:
        return av.open(str(path.absolute()), metadata_errors="replace", options=_OPTIONS)
    except av.ArgumentError:
        raise InputError(
            f"{path}: not a video that FFmpeg can read: a playlist, a picture or a damaged header"
        ) from None


def _no_decoder(tag: str) -> str:
    if tag in ("encv", "drmi"):
        return f"encrypted (codec '{tag}'); get it without protection"
    codec = f"codec '{tag}'" if tag else "its codec"
    return f"{codec} is not known to FFmpeg; convert it with the program that wrote it"
