"""An open camera or address: its frames, each with the source's own time stamp where it has one.

Cheap cameras send JPEGs over HTTP as multipart/x-mixed-replace. Lengths are believed where a
image ends there, as it is then whole before the next part begins. Bytes between two parts, or
is not a JPEG, is passed over up to the next boundary.
"""

import errno
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import av
import cv2
from av.video.frame import VideoFrame

from actionspan.arrays import UInt8
from actionspan.errors import InputError
from actionspan.live.settings import Source, StreamSettings
from actionspan.video.decode import pyav_picture
from actionspan.video.sound import LiveSound

_LOOK = 4096  # bytes among which the first boundary is
_MOST = 1 << 26  # bytes of a part
_LONGEST_HEAD = 1 << 14  # bytes of the lines before an image
_FIRST = re.compile(
    rb"(--[!-~]{1,200})[ \t]*\r?\n(?:[^\r\n:]{1,99}:[^\r\n]*\r?\n){0,20}?content-type:[ \t]*image/",
    re.IGNORECASE,
)
_HEAD_ENDS = re.compile(rb"\r?\n\r?\n")
_KIND = re.compile(rb"^content-type:[ \t]*image/jpe?g", re.IGNORECASE | re.MULTILINE)
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,20})", re.IGNORECASE | re.MULTILINE)
_PICTURE_ENDS = b"\xff\xd9"
# Streams of images without time stamps: FFmpeg makes some up, for 25 frames a second.
_UNSTAMPED = {"mpjpeg", "mjpeg", "image2pipe", "jpeg_pipe", "h264", "hevc", "m4v"}
# the second: microseconds spent on probing the streams
_OPTIONS = {"fflags": "nobuffer", "analyzeduration": "2000000"}
# over UDP a lost packet smears the image for a while
_RTSP = {"rtsp_flags": "prefer_tcp", "allowed_media_types": "video"}
_BYTES = {"raw_packet_size": "65536"}
_BROKEN_PACKETS = 250  # one after the other: ten seconds that cannot be decoded


def find_boundary(data: bytes) -> bytes | None:
    """Return the boundary of the message that begins with `data`; None: it has no images."""
    found = _FIRST.search(data)
    return found[1] if found else None


class Parts:
    """Cuts bytes into images as they come; `boundary` includes its two dashes."""

    def __init__(self, boundary: bytes) -> None:
        self._boundary = boundary
        self._data = bytearray()
        self._in_picture = False
        self._length = 0  # of the image, as its head states; 0: it does not
        self._searched = 0  # bytes that hold no boundary

    def add(self, data: bytes) -> Iterator[bytes]:
        """Take what has come, and yield each image that is whole.

        Raises:
            InputError: 64 MiB hold no boundary; the line lacks the source.
        """
        self._data += data
        while (picture := self._next()) is not None:
            if picture:
                yield picture
        if len(self._data) > _MOST:
            raise InputError(f"a part of more than {_MOST >> 20} MiB: no boundary ends it")

    def _next(self) -> bytes | None:
        """Return an image, nothing where something else was passed over; None: more must come."""
        if self._in_picture:
            return self._picture()
        at = self._data.find(self._boundary)
        if at < 0:
            del self._data[: -len(self._boundary)]
            return None
        del self._data[:at]
        head = _HEAD_ENDS.search(self._data, len(self._boundary))
        if head is None and len(self._data) < _LONGEST_HEAD:
            return None
        lines = bytes(self._data[: head.start()]) if head else b""
        if self._boundary in lines[1:] or not _KIND.search(lines):
            del self._data[: len(self._boundary)]
            return b""
        length = _LENGTH.search(lines)
        assert head is not None
        del self._data[: head.end()]
        self._in_picture, self._searched = True, 0
        self._length = int(length[1]) if length else 0
        return b""

    def _picture(self) -> bytes | None:
        end, next_part = self._length, b"\n" + self._boundary
        there = self._data[max(0, end - 64) : end]
        at_an_end = there.rstrip(b"\0\r\n").endswith(_PICTURE_ENDS)
        # a length that is too long may reach the end of a later image
        if len(self._data) < end or not at_an_end or self._data.find(next_part, 0, end) >= 0:
            end = self._data.find(next_part, self._searched)
            self._searched = max(0, len(self._data) - len(self._boundary))
        if end < 0:
            return None
        picture = bytes(self._data[:end])
        del self._data[:end]
        self._in_picture = False
        return picture


class Seen(NamedTuple):
    """A frame as it comes out of a connection."""

    picture: Callable[[], UInt8]
    own: float | None  # its own time stamp in seconds


class Connection(ABC):
    """An open source."""

    recorded = False  # it has an end and time stamps of its own, as a file has
    sound: LiveSound | None = None  # counts its sound, where that is wanted

    @abstractmethod
    def frames(self) -> Iterator[Seen]:
        """Yield frames as they come, until the source ends or is silent.

        Raises:
            InputError: It broke off; the line states the reason.
        """

    @abstractmethod
    def close(self) -> None:
        """Let the source go."""


def connect(source: Source, settings: StreamSettings) -> Connection:
    """Open a camera or an address.

    Raises:
        InputError: It cannot be opened; the line names the source without its password.
    """
    if source.kind == "camera":
        return _Camera(source)
    if source.may_be_recorded:  # by HTTP
        found = _Multipart(source, settings)
        if found.begins():
            return found
    return _Stream(source, settings)


class _Address(Connection):
    """Sources that FFmpeg opens, through PyAV: it has timeouts, and names the fault."""

    _stamped = False  # its frames have time stamps

    def __init__(self, source: Source, container: Any, settings: StreamSettings) -> None:
        self._shown, self._container, self._quiet = source.shown, container, settings.read_seconds

    @abstractmethod
    def _decoders(self) -> Iterator[Callable[[], list[VideoFrame]]]:
        """Yield what decodes each packet of the video as it comes."""

    def frames(self) -> Iterator[Seen]:
        broken = 0
        try:
            for decode in self._decoders():
                try:
                    decoded = decode()
                except av.InvalidDataError:  # a damaged image; the next may be whole
                    broken += 1
                    if broken == _BROKEN_PACKETS:
                        raise InputError(f"{self._shown}: cannot be decoded") from None
                    continue
                for frame in decoded:
                    broken = 0
                    own = frame.time if self._stamped else None
                    yield Seen(partial(pyav_picture, frame), own)
        except av.ExitError:
            raise self._silent() from None
        except (av.FFmpegError, OSError) as error:
            raise InputError(f"{self._shown}: {_reason(error)}") from None

    def close(self) -> None:
        self._container.close()

    def _silent(self) -> InputError:
        return InputError(f"{self._shown}: silent for {self._quiet:g} s")


class _Stream(_Address):
    """Any format that FFmpeg knows."""

    def __init__(self, source: Source, settings: StreamSettings) -> None:
        rtsp = source.place.lower().startswith("rtsp")
        kinds = {"allowed_media_types": "video+audio"} if settings.sound else {}
        container = _opened(source, settings, _OPTIONS | (_RTSP | kinds if rtsp else {}))
        super().__init__(source, container, settings)
        self._stream: Any = container.streams.best("video")
        if self._stream is None or self._stream.codec_context is None:
            container.close()
            unknown = "no video stream", "a codec that FFmpeg does not know"
            raise InputError(f"{self._shown}: {unknown[self._stream is not None]}")
        audio = container.streams.best("audio")
        self._audio = -1 if audio is None or audio.codec_context is None else audio.index
        self._stream.thread_type = "SLICE"  # threads by frame would add to the latency
        self._stamped = container.format.name not in _UNSTAMPED
        self.recorded = source.may_be_recorded and self._stamped and container.duration is not None

    def _decoders(self) -> Iterator[Callable[[], list[VideoFrame]]]:
        last = time.monotonic()
        for packet in self._container.demux():  # its sound must not hide its silence
            # When its time is over, FFmpeg may return part of the last image and wait again.
            if time.monotonic() - last >= self._quiet and not self.recorded:
                raise self._silent()
            if packet.stream.index == self._stream.index:
                yield packet.decode
                last = time.monotonic()
            elif packet.stream.index == self._audio and self.sound is not None:
                self.sound.take(packet)


class _Multipart(_Address):
    """JPEGs over HTTP; FFmpeg's own reader of them ends where a camera sends anything else."""

    def __init__(self, source: Source, settings: StreamSettings) -> None:
        container = _opened(source, settings, _BYTES, format="data")
        super().__init__(source, container, settings)
        self._decoder: Any = av.CodecContext.create("mjpeg", "r")
        self._come: Iterator[bytes] = (bytes(packet) for packet in container.demux())
        self._parts: Parts | None = None

    def begins(self) -> bool:
        """Whether it is multipart; if not it is closed, to be opened in another way."""
        head, boundary = b"", None
        try:
            while boundary is None and len(head) < _LOOK:
                head += next(self._come)
                boundary = find_boundary(head)
        except av.ExitError:
            self.close()
            raise InputError(f"{self._shown}: no answer within {self._quiet:g} s") from None
        except (StopIteration, av.FFmpegError, OSError):
            pass  # opened again, it reports the fault
        if boundary is None:
            self.close()
            return False
        self._parts, self._come = Parts(boundary), chain([head], self._come)
        return True

    def _decoders(self) -> Iterator[Callable[[], list[VideoFrame]]]:
        assert self._parts is not None
        last = time.monotonic()
        for data in self._come:
            try:
                for picture in self._parts.add(data):
                    yield partial(self._decoder.decode, av.Packet(picture))
                    last = time.monotonic()
            except InputError as error:
                raise InputError(f"{self._shown}: {error}") from None
            if time.monotonic() - last >= self._quiet:
                raise InputError(f"{self._shown}: it sends, but no JPEG for {self._quiet:g} s")


def _opened(source: Source, settings: StreamSettings, options: dict[str, str], **more: Any) -> Any:
    more |= {"timeout": (settings.open_seconds, settings.read_seconds), "options": options}
    try:
        return av.open(source.place, metadata_errors="replace", **more)
    except av.ExitError:
        reason = f"no answer within {settings.open_seconds:g} s"
    except (av.FFmpegError, OSError) as error:
        reason = _reason(error)
    except ValueError:  # its message may hold the address
        reason = "not an address that can be opened"
    raise InputError(f"{source.shown}: {reason}")


class _Camera(Connection):
    """A camera of this machine, through OpenCV."""

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
            raise InputError(f"{self._shown}: the camera is missing, or another program uses it")
        self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)  # stale frames are of no use

    def frames(self) -> Iterator[Seen]:
        while True:
            good, picture = self._capture.read()
            if not good:
                raise InputError(f"{self._shown}: gives no more frames")
            yield Seen(partial(cv2.cvtColor, picture, cv2.COLOR_BGR2RGB), None)

    def close(self) -> None:
        self._capture.release()


def _reason(error: Exception) -> str:
    """Return what went wrong without the address, which FFmpeg's errors name."""
    if isinstance(error, av.InvalidDataError):
        return "it does not send video that FFmpeg can read"
    if getattr(error, "errno", None) == errno.EIO:
        return "no such host, or no video comes from it"
    return getattr(error, "strerror", None) or type(error).__name__
