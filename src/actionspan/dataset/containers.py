"""Containers of video: facts of their structure without demuxing, and opening them by FFmpeg.

A demuxer ends quietly where a truncated file ends. Only the length that a file states itself is a
sure sign that the rest is missing.

FFmpeg detects a file's type by its content. Left to itself it would read a text named `.mp4` as a
playlist, decode the files that it lists in its place, and open addresses. Here it opens one file,
in a container of video, by a decoder that exists.
"""

import io
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from actionspan.dataset.mp4 import (
    ASF,
    EBML,
    MXF,
    boxes,
    bytes_at,
    check_packed,
    claimed_samples,
    codec_tag,
    is_mp4,
    is_name,
    is_sideways,
)
from actionspan.dataset.playlists import first_file, is_playlist, playlist_text, read_parts
from actionspan.errors import InputError

_ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_MP4_BOXES = frozenset(
    (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"moof", b"sidx", b"styp")
    + (b"uuid", b"mfra", b"meta", b"pdin", b"emsg", b"prft", b"ssix")
)


def stated_bytes(path: Path) -> int:
    """Return the number of bytes that the container states, 0 where it does not.

    MP4/MOV (top-level boxes), Matroska/WebM (segment), AVI (RIFF), WMV/ASF (file properties), FLV
    (`filesize` of its metadata) and MXF (where its footer begins) do. A shorter file is truncated,
    a longer file is complete.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        if head[4:8] in _MP4_BOXES:
            named = takewhile(lambda box: is_name(box[0]), boxes(file, 0, size))
            return max((end for _, _, end in named), default=0)
        if head[:4] == EBML:
            return _matroska_bytes(file)
        if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
            return 8 + int(struct.unpack("<I", head[4:8])[0])
        if head[:3] == b"FLV":
            return _flv_bytes(file)
        if head == MXF[:12]:
            return _mxf_bytes(file)
        properties = _asf_properties(file)
    return 0 if properties is None else int(struct.unpack_from("<Q", properties, 16)[0])


def stated_seconds(path: Path) -> float:
    """Return the duration that a WMV/ASF file states, 0 where it is another or does not.

    FFmpeg forgets it where the size of the file is not the stated one.
    """
    with path.open("rb") as file:
        properties = _asf_properties(file)
    if properties is None:
        return 0.0
    shown, _, preroll = struct.unpack_from("<3Q", properties, 40)
    return max(int(shown) // 10_000 - int(preroll), 0) / 1000


def _asf_properties(file: BinaryIO) -> bytes | None:
    """Return the File Properties object of an ASF, without its length; None if it is absent."""
    kind, size = _asf_object(file, 0)
    place = 30
    if kind != ASF:
        return None
    while place + 24 <= size:
        kind, length = _asf_object(file, place)
        if kind == _ASF_PROPERTIES:
            properties = file.read(80)
            live = len(properties) < 80 or properties[64] & 1  # a broadcast: no number counts
            return None if live else properties
        if length < 24:
            break
        place += length
    return None


def _asf_object(file: BinaryIO, place: int) -> tuple[bytes, int]:
    """Return the kind and the length of an object of ASF."""
    head = bytes_at(file, place, 24)
    return (head[:16], int(struct.unpack_from("<Q", head, 16)[0])) if len(head) == 24 else (b"", 0)


def _flv_bytes(file: BinaryIO) -> int:
    """Return the size that the metadata of an FLV has, 0 if there is none."""
    metadata = bytes_at(file, 0, 4096)
    place = metadata.find(b"\x00\x08filesize\x00")  # a double follows
    if metadata[13:14] != b"\x12" or place < 0 or place + 19 > len(metadata):
        return 0
    size = float(struct.unpack_from(">d", metadata, place + 11)[0])
    return int(size) if 0 < size < 2**53 else 0


def _mxf_bytes(file: BinaryIO) -> int:
    """Return where the footer of an MXF begins by its header, and its key ends; 0 if unknown."""
    head = bytes_at(file, 0, 64)
    if head[: len(MXF)] != MXF or len(head) < 64:
        return 0
    skipped = 17 + (head[16] & 0x7F if head[16] & 0x80 else 0)  # the key and the length
    footer = int.from_bytes(head[skipped + 24 : skipped + 32], "big")
    return footer + 16 if footer else 0


def _matroska_bytes(file: BinaryIO) -> int:
    """Return where the Matroska segment ends, 0 if its length is unknown (live recordings)."""
    file.seek(4)
    header = _ebml_number(file)
    if header is None:
        return 0
    file.seek(header, os.SEEK_CUR)
    if file.read(4) != b"\x18\x53\x80\x67":  # the segment comes right after the EBML header
        return 0
    length = _ebml_number(file)
    return 0 if length is None else file.tell() + length


def _ebml_number(file: BinaryIO) -> int | None:
    """Read a variable-length number; None if it means "unknown" or is not there."""
    first = file.read(1)
    if not first or first[0] == 0:
        return None
    more = 8 - first[0].bit_length()
    rest = file.read(more)
    if len(rest) < more:
        return None
    value = (first[0] & ((1 << (7 - more)) - 1)) << (8 * more) | int.from_bytes(rest, "big")
    return None if value == (1 << (7 * (more + 1))) - 1 else value


def turned_sideways(path: Path, track_id: int) -> bool:
    """Return whether an MP4/MOV track is displayed turned by 90 or 270 degrees.

    Other containers hardly ever turn an image and give False.
    """
    if is_playlist(path):  # its tracks have the ids of no file
        path = first_file(path)
        with opened(path) as (_, stream):
            track_id = stream.id
    return is_sideways(path, track_id)


# containers, and streams without one, by the names of FFmpeg's demuxers; none opens another file
_MOV = "mov,mp4,m4a,3gp,3g2,mj2,"
_FORMATS = (
    "matroska,webm,avi,asf,flv,live_flv,kux,mpegts,mpeg,mxf,ogg,nut,rm,wtv,"
    "dv,gxf,lxf,nsv,ty,pva,dhav,ifv,ivf,ivr,mlv,cine,r3d,amv,swf,gif,apng,flic,"
    "h261,h263,h264,hevc,vvc,av1,obu,m4v,mpegvideo,mjpeg,mjpeg_2000,vc1,vc1test,dirac,dnxhd,"
    "cavsvideo,avs2,avs3,yuv4mpegpipe,apv,evc"
)


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
            tag = codec_tag(path, stream.id)
            if tag in ("encv", "drmi"):
                what = f"encrypted (codec '{tag}'); get it without protection"
                raise InputError(f"{path}: {what}")
            codec = f"codec '{tag}'" if tag else "its codec"
            what = "is not known to FFmpeg; convert it with the program that wrote it"
            raise InputError(f"{path}: {codec} {what}")
        yield container, stream


def open_container(path: Path) -> InputContainer:
    """Open a file with PyAV, whatever streams it has.

    Raises:
        InputError: It is in no container of video, or claims an impossible number of samples or
            a header of more than 64 MiB.
        OSError: The file cannot be read (av.FFmpegError: not by FFmpeg).
    """
    parts = read_parts(path) if is_playlist(path) else []
    demuxers = {_formats(part.path) for part in parts} or {_formats(path)}
    for part in parts:
        with part.path.open("rb") as file:
            if file.read(8) == b"ffconcat":  # FFmpeg would follow it
                raise InputError(f"{part.path}: not a video but a list of files")
    if len(demuxers) > 1:
        raise InputError(f"{path}: its files are of different containers")
    options = {"format_whitelist": demuxers.pop(), "protocol_whitelist": "file"}
    place: Any = str(path.absolute())
    if parts:
        text = playlist_text(parts, lambda file: f"file:{file.absolute()}")
        place = io.BytesIO(os.fsencode(text))
        options |= {"safe": "0", "format_whitelist": f"concat,{options['format_whitelist']}"}
    try:
        container: InputContainer = av.open(
            place, format="concat" if parts else None, metadata_errors="replace", options=options
        )
        return container
    except av.ArgumentError:
        what = "a playlist, an image or a damaged header"
        raise InputError(f"{path}: not a video that FFmpeg can read: {what}") from None


def _formats(path: Path) -> str:
    """Return the demuxers that may open a file, which is looked through before.

    Raises:
        InputError: See `open_container`.
    """
    samples, size = claimed_samples(path), path.stat().st_size
    if samples > size:  # FFmpeg would take 24 bytes of memory for each
        raise InputError(f"{path}: damaged: its index has {samples} samples, in {size} bytes")
    check_packed(path)
    # a file that was not checked as MP4 is not opened as MP4
    return (_MOV if is_mp4(path) else "") + _FORMATS
