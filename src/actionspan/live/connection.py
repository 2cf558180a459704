"""An open camera or address: its frames, each with the source's own time stamp where it has one."""

import errno
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

import av
import cv2
import numpy as np

from actionspan.arrays import UInt8
from actionspan.errors import InputError
from actionspan.live.settings import StreamSettings
from actionspan.live.source import Source
from actionspan.video.decode import pyav_picture

# Streams of pictures without time stamps: FFmpeg makes some up, for 25 frames a second.
_UNSTAMPED = {"mpjpeg", "mjpeg", "image2pipe", "jpeg_pipe", "h264", "hevc", "m4v"}
_OPTIONS = {
    "rtsp_transport": "tcp",  # over UDP a lost packet smears the picture until the next key frame
    "rtsp_flags": "prefer_tcp",
    "fflags": "nobuffer",
    "analyzeduration": "2000000",  # microseconds spent on finding out what the streams are
}
_BROKEN_PACKETS = 250  # one after the other: ten seconds that cannot be decoded


class Seen(NamedTuple):
    """A frame as it comes out of a connection."""

    picture: Callable[[], UInt8]
    own: float | None  # its own time stamp in seconds


class Connection(Protocol):
    """An open source."""

    recorded: bool  # it has an end and time stamps of its own, as a file has

    def frames(self) -> Iterator[Seen]:
        """Yield frames as they come, until the source ends or is silent.

        Raises:
            InputError: It broke off; the line says why.
        """

    def close(self) -> None:
        """Let the source go."""


def connect(source: Source, settings: StreamSettings) -> Connection:
    """Open a camera or an address.

    Raises:
        InputError: It cannot be opened; the line names the source without its password.
    """
    return _Camera(source) if source.kind == "camera" else _Address(source, settings)


class _Address:
    """A stream that FFmpeg opens, through PyAV: it has timeouts, and says what went wrong."""

    def __init__(self, source: Source, settings: StreamSettings) -> None:
        self._shown = source.shown
        self._quiet = settings.read_seconds
        timeouts = (settings.open_seconds, settings.read_seconds)
        rtsp = source.place.lower().startswith("rtsp")
        options = _OPTIONS if rtsp else {k: v for k, v in _OPTIONS.items() if "rtsp" not in k}
        try:
            self._container: Any = av.open(
                source.place, options=options, timeout=timeouts, metadata_errors="replace"
            )
        except av.ExitError:
            raise InputError(
                f"{self._shown}: no answer within {settings.open_seconds:g} s"
            ) from None
        except (av.FFmpegError, OSError) as error:
            raise InputError(f"{self._shown}: {_reason(error)}") from None
        except ValueError:  # its message may hold the address
            raise InputError(f"{self._shown}: not an address that can be opened") from None
        try:
            best: Any = self._container.streams.best("video")
            if best is None:
                raise InputError(f"{self._shown}: no video stream")
            self._stream = best
            self._stream.thread_type = "SLICE"  # threads by frame would add to the latency
            form = self._container.format.name
        except BaseException:
            self._container.close()
            raise
        self._stamped = form not in _UNSTAMPED
        self.recorded = (
            source.may_be_recorded and self._stamped and self._container.duration is not None
        )

    def frames(self) -> Iterator[Seen]:
        broken = 0
        try:
            for packet in self._container.demux(self._stream):
                try:
                    decoded = packet.decode()
                except av.InvalidDataError:  # a damaged picture; the next may be whole
                    broken += 1
                    if broken == _BROKEN_PACKETS:
                        raise InputError(f"{self._shown}: cannot be decoded") from None
                    continue
                for frame in decoded:
                    broken = 0
                    own = frame.time if self._stamped else None
                    yield Seen(partial(pyav_picture, frame), own)
        except av.ExitError:
            raise InputError(f"{self._shown}: silent for {self._quiet:g} s") from None
        except (av.FFmpegError, OSError) as error:
            raise InputError(f"{self._shown}: {_reason(error)}") from None

    def close(self) -> None:
        self._container.close()


class _Camera:
    """A camera of this machine, through OpenCV."""

    recorded = False

    def __init__(self, source: Source) -> None:
        self._shown = source.shown
        log: Any = cv2.utils.logging
        before = log.getLogLevel()
        log.setLogLevel(log.LOG_LEVEL_SILENT)  # its warnings are many, and not one line
        try:
            self._capture = cv2.VideoCapture(int(source.place))
        finally:
            log.setLogLevel(before)
        if not self._capture.isOpened():
            raise InputError(f"{self._shown}: there is no such camera, or another program uses it")
        self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)  # stale frames are of no use

    def frames(self) -> Iterator[Seen]:
        while True:
            good, picture = self._capture.read()
            if not good:
                raise InputError(f"{self._shown}: gives no more frames")
            yield Seen(partial(_rgb, picture), None)

    def close(self) -> None:
        self._capture.release()


def _rgb(picture: Any) -> UInt8:
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), np.uint8)


def _reason(error: Exception) -> str:
    """Return what went wrong without the address, which FFmpeg's errors name."""
    if isinstance(error, av.InvalidDataError):
        return "what it sends is no video that FFmpeg can read"
    if getattr(error, "errno", None) == errno.EIO:
        return "no such host, or no video comes from it"
    return getattr(error, "strerror", None) or type(error).__name__
