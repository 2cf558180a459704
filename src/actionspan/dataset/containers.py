"""Containers of video: facts of their structure without demuxing, and opening them by FFmpeg.

A demuxer ends quietly where a truncated file ends. Only the length that a file states itself is a
sure sign that the rest is missing.

FFmpeg detects a file's type by its content. Left to itself it would read a text named `.mp4` as a
playlist, decode the files that it lists in its place, and open addresses. Here it opens one file,
in a container of video, by a decoder that exists.
"""

import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from actionspan.errors import InputError, printable

_EBML = b"\x1a\x45\xdf\xa3"
_ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_SOUND = int.from_bytes(b"soun", "big")
_PER_ENTRY = 160  # samples of such sound that FFmpeg takes as one, at least
_MXF = bytes.fromhex("060e2b34020501010d01020101")  # the pack of any partition
_OTHERS = (_EBML, _ASF[:4], _MXF[:4], b"RIFF", b"FLV", b"OggS", b"G")  # beginnings of no MP4
# a header by Apple's old compression, and the size that FFmpeg makes room for and fills
_PACKED, _PACKED_BYTES = re.compile(rb"dcomzlib.{4}cmvd(.{4})", re.DOTALL), 20
_UNPACKED = 64 << 20  # bytes; of days of video
_BLOCK = 1 << 20  # bytes looked through at once
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
            named = takewhile(lambda box: _is_name(box[0]), _boxes(file, 0, size))
            return max((end for _, _, end in named), default=0)
        if head[:4] == _EBML:
            return _matroska_bytes(file)
        if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
            return 8 + int(struct.unpack("<I", head[4:8])[0])
        if head[:3] == b"FLV":
            return _flv_bytes(file)
        if head == _MXF[:12]:
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
    if kind != _ASF:
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
    head = _bytes_at(file, place, 24)
    return (head[:16], int(struct.unpack_from("<Q", head, 16)[0])) if len(head) == 24 else (b"", 0)


def _flv_bytes(file: BinaryIO) -> int:
    """Return the size that the metadata of an FLV has, 0 if there is none."""
    metadata = _bytes_at(file, 0, 4096)
    place = metadata.find(b"\x00\x08filesize\x00")  # a double follows
    if metadata[13:14] != b"\x12" or place < 0 or place + 19 > len(metadata):
        return 0
    size = float(struct.unpack_from(">d", metadata, place + 11)[0])
    return int(size) if 0 < size < 2**53 else 0


def _mxf_bytes(file: BinaryIO) -> int:
    """Return where the footer of an MXF begins by its header, and its key ends; 0 if unknown."""
    head = _bytes_at(file, 0, 64)
    if head[: len(_MXF)] != _MXF or len(head) < 64:
        return 0
    skipped = 17 + (head[16] & 0x7F if head[16] & 0x80 else 0)  # the key and the length
    footer = int.from_bytes(head[skipped + 24 : skipped + 32], "big")
    return footer + 16 if footer else 0


def _boxes(file: BinaryIO, start: int, stop: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield (type, start of content, end) of the boxes of MP4 that begin in [start, stop)."""
    while start + 8 <= stop:
        length, kind = struct.unpack(">I4s", _bytes_at(file, start, 8))
        content = start + 8
        if length == 1:  # a 64-bit length follows
            text = file.read(8)
            if len(text) < 8:
                return
            length, content = struct.unpack(">Q", text)[0], content + 8
        end = start + length if length else stop  # 0: the box reaches to the end
        if end < content:
            return
        yield kind, content, end
        start = end


def _is_name(kind: bytes) -> bool:
    """Return whether a box has a name as boxes have; FFmpeg steps over one that has not."""
    return all(0x20 <= byte < 0x7F or byte == 0xA9 for byte in kind)


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

    Other containers hardly ever turn a picture and give False.
    """
    with _mp4(path) as (file, spans):
        for start, _ in _inside(file, spans, b"moov", b"trak", b"tkhd"):
            header_id, sideways = _track_header(_bytes_at(file, start, 96))
            if header_id == track_id:
                return sideways
    return False


def _codec_tag(path: Path, track_id: int) -> str:
    """Return the four characters that name the codec of an MP4/MOV track, "" if there are none."""
    with _mp4(path) as (file, spans):
        for track in _inside(file, spans, b"moov", b"trak"):
            headers = _inside(file, [track], b"tkhd")
            ids = {_track_header(_bytes_at(file, start, 96))[0] for start, _ in headers}
            if ids <= {track_id}:
                for start, _ in _inside(file, [track], b"mdia", b"minf", b"stbl", b"stsd"):
                    tag = _bytes_at(file, start + 12, 4)  # after version, count, entry's length
                    return printable(tag.decode("latin-1"))
    return ""


def claimed_samples(path: Path) -> int:
    """Return how many samples a track of an MP4/MOV has by its index, or all fragments together.

    Each has a byte at least, but an index may claim any number in a few.
    """
    most = 0
    with _mp4(path) as (file, spans):
        for track in _inside(file, spans, b"moov", b"trak"):
            tables = _inside(file, [track], b"mdia", b"minf", b"stbl")
            sizes = [span for kind in (b"stsz", b"stz2") for span in _inside(file, tables, kind)]
            times = _inside(file, tables, b"stts")
            # sound whose samples last a tick each, some less than a byte, is taken by its chunks
            kind = _numbers(file, _inside(file, [track], b"mdia", b"hdlr"), 8)
            ticks = _numbers(file, times, 4) + _numbers(file, times, 12)
            each = _PER_ENTRY if kind == [_SOUND] and ticks == [1, 1] else 1
            most = max([most, *(count // each for count in _numbers(file, sizes, 8))])
        fragments = sum(_numbers(file, _inside(file, spans, b"moof", b"traf", b"trun"), 4))
    return max(most, fragments)


def _check_packed(path: Path) -> None:
    """Refuse headers of MP4/MOV that unpack to much: FFmpeg allocates the size that they claim.

    They may stand in any box but that of the samples, and in another such header.
    """
    found: set[tuple[int, bytes]] = set()
    with _mp4(path) as (file, spans):
        for kind, start, end in (box for span in spans for box in _boxes(file, *span)):
            for place in range(start, start if kind == b"mdat" else min(end, spans[0][1]), _BLOCK):
                block = _bytes_at(file, place, _BLOCK + _PACKED_BYTES - 1)
                found |= {(place + each.end(), each[1]) for each in _PACKED.finditer(block)}
        for place, stated in found:
            size = int.from_bytes(stated, "big")
            if size > _UNPACKED:
                line = f"its compressed header (cmov) says {size} bytes; at most {_UNPACKED}"
                raise InputError(f"{path}: {line}")
            inside = b""
            with suppress(zlib.error):  # FFmpeg will not read it either
                inside = zlib.decompressobj().decompress(_bytes_at(file, place, size), _UNPACKED)
            if len(found) > 1 or _PACKED.search(inside):
                raise InputError(f"{path}: more than one compressed header (cmov)")


def _numbers(file: BinaryIO, spans: list[tuple[int, int]], place: int) -> list[int]:
    """Return the number of 32 bits at a place in each box."""
    return [int.from_bytes(_bytes_at(file, start + place, 4), "big") for start, _ in spans]


def _bytes_at(file: BinaryIO, place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


@contextmanager
def _mp4(path: Path) -> Iterator[tuple[BinaryIO, list[tuple[int, int]]]]:
    """Open a file; yield it and where it has boxes of MP4, which is nowhere in other containers.

    To FFmpeg a file is MP4 whatever its first box is called.
    """
    with path.open("rb") as file:
        head = file.read(8)
        boxes = len(head) == 8 and _is_name(head[4:]) and not head.startswith(_OTHERS)
        yield file, [(0, path.stat().st_size)] if boxes else []


def _inside(file: BinaryIO, spans: list[tuple[int, int]], *kinds: bytes) -> list[tuple[int, int]]:
    """Return (start, end) of the contents of boxes, each kind inside those of the kind before."""
    for wanted in kinds:
        boxes = [box for span in spans for box in _boxes(file, *span)]
        spans = [(start, end) for kind, start, end in boxes if kind == wanted]
    return spans


def _track_header(box: bytes) -> tuple[int, bool]:
    """Return a track header's track id, and whether its matrix swaps width and height."""
    wide = box[:1] == b"\x01"  # version 1 has 64-bit times
    if len(box) < (96 if wide else 84):
        return 0, False
    (track_id,) = struct.unpack_from(">I", box, 20 if wide else 12)
    a, b, _, c, d = struct.unpack_from(">5i", box, 52 if wide else 40)
    return track_id, abs(b) + abs(c) > abs(a) + abs(d)


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
            tag = _codec_tag(path, stream.id)
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
    samples, size = claimed_samples(path), path.stat().st_size
    if samples > size:  # FFmpeg would take 24 bytes of memory for each
        raise InputError(f"{path}: damaged: its index has {samples} samples, in {size} bytes")
    _check_packed(path)
    with _mp4(path) as (_, boxes):  # a file that was not checked as MP4 is not opened as MP4
        formats = (_MOV if boxes else "") + _FORMATS
    options = {"format_whitelist": formats, "protocol_whitelist": "file"}
    try:
        return av.open(str(path.absolute()), metadata_errors="replace", options=options)
    except av.ArgumentError:
        what = "a playlist, a picture or a damaged header"
        raise InputError(f"{path}: not a video that FFmpeg can read: {what}") from None
