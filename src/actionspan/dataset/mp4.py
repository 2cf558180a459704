"""Boxes of MP4 and MOV: their facts, and the claims that FFmpeg would believe."""

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from actionspan.errors import InputError, printable

EBML = b"\x1a\x45\xdf\xa3"
ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
MXF = bytes.fromhex("060e2b34020501010d01020101")  # the pack of any partition
_OTHERS = (EBML, ASF[:4], MXF[:4], b"RIFF", b"FLV", b"OggS", b"G")  # beginnings of no MP4
_SOUND = int.from_bytes(b"soun", "big")
_PER_ENTRY = 160  # samples of such sound that FFmpeg takes as one, at least
# a header by Apple's old compression, and the size that FFmpeg makes room for and fills
_PACKED, _PACKED_BYTES = re.compile(rb"dcomzlib.{4}cmvd(.{4})", re.DOTALL), 20
_UNPACKED = 64 << 20  # bytes; of days of video
_BLOCK = 1 << 20  # bytes looked through at once


def boxes(file: BinaryIO, start: int, stop: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield (type, start of content, end) of the boxes of MP4 that begin in [start, stop)."""
    while start + 8 <= stop:
        length, kind = struct.unpack(">I4s", bytes_at(file, start, 8))
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


def is_name(kind: bytes) -> bool:
    """Return whether a box has a name as boxes have; FFmpeg steps over one that has not."""
    return all(0x20 <= byte < 0x7F or byte == 0xA9 for byte in kind)


def is_mp4(path: Path) -> bool:
    """Return whether FFmpeg may take a file for MP4."""
    with _mp4(path) as (_, spans):
        return bool(spans)


def is_sideways(path: Path, track_id: int) -> bool:
    """Return whether the matrix of an MP4/MOV track swaps width and height."""
    with _mp4(path) as (file, spans):
        for start, _ in _inside(file, spans, b"moov", b"trak", b"tkhd"):
            header_id, sideways = _track_header(bytes_at(file, start, 96))
            if header_id == track_id:
                return sideways
    return False


def codec_tag(path: Path, track_id: int) -> str:
    """Return the four characters that name the codec of an MP4/MOV track, "" if there are none."""
    with _mp4(path) as (file, spans):
        for track in _inside(file, spans, b"moov", b"trak"):
            headers = _inside(file, [track], b"tkhd")
            ids = {_track_header(bytes_at(file, start, 96))[0] for start, _ in headers}
            if ids <= {track_id}:
                for start, _ in _inside(file, [track], b"mdia", b"minf", b"stbl", b"stsd"):
                    tag = bytes_at(file, start + 12, 4)  # after version, count, entry's length
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
            # sound with samples of a tick each, some less than a byte, is taken by its chunks
            kind = _numbers(file, _inside(file, [track], b"mdia", b"hdlr"), 8)
            ticks = _numbers(file, times, 4) + _numbers(file, times, 12)
            each = _PER_ENTRY if kind == [_SOUND] and ticks == [1, 1] else 1
            most = max([most, *(count // each for count in _numbers(file, sizes, 8))])
        fragments = sum(_numbers(file, _inside(file, spans, b"moof", b"traf", b"trun"), 4))
    return max(most, fragments)


def check_packed(path: Path) -> None:
    """Refuse headers of MP4/MOV that unpack to too much: FFmpeg allocates the size that they claim.

    They may stand in any box but the samples', and in another such header.
    """
    found: set[tuple[int, bytes]] = set()
    with _mp4(path) as (file, spans):
        for kind, start, end in (box for span in spans for box in boxes(file, *span)):
            for place in range(start, start if kind == b"mdat" else min(end, spans[0][1]), _BLOCK):
                block = bytes_at(file, place, _BLOCK + _PACKED_BYTES - 1)
                found |= {(place + each.end(), each[1]) for each in _PACKED.finditer(block)}
        for place, stated in found:
            size = int.from_bytes(stated, "big")
            if size > _UNPACKED:
                line = f"its compressed header (cmov) states {size} bytes; at most {_UNPACKED}"
                raise InputError(f"{path}: {line}")
            inside = b""
            with suppress(zlib.error):  # FFmpeg will not read it either
                inside = zlib.decompressobj().decompress(bytes_at(file, place, size), _UNPACKED)
            if len(found) > 1 or _PACKED.search(inside):
                raise InputError(f"{path}: more than one compressed header (cmov)")


def _numbers(file: BinaryIO, spans: list[tuple[int, int]], place: int) -> list[int]:
    """Return the number of 32 bits at a place in each box."""
    return [int.from_bytes(bytes_at(file, start + place, 4), "big") for start, _ in spans]


def bytes_at(file: BinaryIO, place: int, size: int) -> bytes:
    """Return up to `size` bytes from a place of a file."""
    file.seek(place)
    return file.read(size)


@contextmanager
def _mp4(path: Path) -> Iterator[tuple[BinaryIO, list[tuple[int, int]]]]:
    """Open a file; yield it and where it has boxes of MP4, which is nowhere in other containers.

    To FFmpeg a file is MP4 whatever its first box is called.
    """
    with path.open("rb") as file:
        head = file.read(8)
        named = len(head) == 8 and is_name(head[4:]) and not head.startswith(_OTHERS)
        yield file, [(0, path.stat().st_size)] if named else []


def _inside(file: BinaryIO, spans: list[tuple[int, int]], *kinds: bytes) -> list[tuple[int, int]]:
    """Return (start, end) of the contents of boxes, each kind inside the kind before."""
    for wanted in kinds:
        found = [box for span in spans for box in boxes(file, *span)]
        spans = [(start, end) for kind, start, end in found if kind == wanted]
    return spans


def _track_header(box: bytes) -> tuple[int, bool]:
    """Return a track header's track id, and whether its matrix swaps width and height."""
    wide = box[:1] == b"\x01"  # version 1 has 64-bit times
    if len(box) < (96 if wide else 84):
        return 0, False
    (track_id,) = struct.unpack_from(">I", box, 20 if wide else 12)
    a, b, _, c, d = struct.unpack_from(">5i", box, 52 if wide else 40)
    return track_id, abs(b) + abs(c) > abs(a) + abs(d)
