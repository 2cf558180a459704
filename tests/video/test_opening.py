"""Files that are opened: in a container of video, by a decoder that exists, and no file beside."""

import re
import socket
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from actionspan.dataset.containers import open_container
from actionspan.dataset.mp4 import claimed_samples
from actionspan.dataset.settings import LimitSettings
from actionspan.dataset.timeline import read_timeline
from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.live.play import play
from actionspan.live.settings import StreamSettings, parse_source
from actionspan.video.decode import read_frames
from actionspan.video.playable import playback_fault, write_playable
from actionspan.video.settings import FrameSettings
from actionspan.video.thumbnails import thumbnails
from video.numbered import encode
from worlds.sounds import write_tone

LISTS = {
    "ffconcat": "ffconcat version 1.0\nfile whole.mp4\nfile whole.mp4\n",
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:2,\nwhole.mp4\n#EXT-X-ENDLIST\n",
    "dash": '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
    'mediaPresentationDuration="PT2S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">'
    '<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="9">'
    "<BaseURL>whole.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
    "m=video {port} RTP/AVP 96\na=rtpmap:96 H264/90000\n",
    "remote": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:2,\nhttp://127.0.0.1:{port}/a.ts\n",
}


@pytest.fixture
def whole(tmp_path):
    return encode(tmp_path / "whole.mp4", 50)


def stream(path, folder):
    """Play a file as a stream; it is opened before there is a player."""
    player: Any = SimpleNamespace(frames=FrameSettings())
    play(parse_source(str(path)), player, StreamSettings(), folder / "out")


def refused(path, folder, reason):
    """Check that no way of opening a file goes on, and that each says why."""
    assert re.match(reason, probe_video(path).error)
    assert thumbnails(path, 3) == []
    for read in (
        lambda: read_timeline(path),
        lambda: list(read_frames(path)),
        lambda: write_playable(path, folder / "copy.mp4"),
        lambda: playback_fault(path),
        lambda: stream(path, folder),
    ):
        with pytest.raises(InputError, match=f"{path}: {reason}"):
            read()


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("suffix", [".mp4", ".m3u8", ".mpd"])
def test_a_list_of_files_opens_none_of_them(tmp_path, whole, kind, suffix):
    path = tmp_path / f"list{suffix}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        path.write_text(LISTS[kind].replace("{port}", str(server.getsockname()[1])))
        refused(path, tmp_path, "not a video that FFmpeg can read")
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("name", ["picture%02d.gif", "picture%02d.png"])
def test_the_pattern_of_a_name_opens_no_pictures_beside(tmp_path, name):
    for number in range(5):
        cv2.imwrite(str(tmp_path / (name % number)), np.zeros((32, 32, 3), np.uint8))
    (tmp_path / name).write_bytes(b"no picture")
    assert probe_video(tmp_path / name).error.startswith("not a video")


@pytest.mark.parametrize("name", ["concat:whole.mp4", "subfile,,start,0,end,9,,:whole.mp4", "a:b"])
def test_the_name_of_a_file_is_no_protocol(tmp_path, whole, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert probe_video(Path(name)).error == "cannot be read: No such file or directory"


def with_codec(path, tag: bytes):
    content = path.read_bytes()
    place = content.index(b"avc1", content.index(b"stsd"))
    damaged = path.with_name(f"{tag.decode()}.mp4")
    damaged.write_bytes(content[:place] + tag + content[place + 4 :])
    return damaged


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("brxq", "codec 'brxq' is not known to FFmpeg; convert it with the program that wrote it"),
        ("encv", r"encrypted \(codec 'encv'\); get it without protection"),
    ],
)
def test_an_unknown_codec_is_named(tmp_path, whole, tag, reason):
    refused(with_codec(whole, tag.encode()), tmp_path, reason)


def claiming(content: bytes, samples: int) -> bytes:
    """The index of an MP4 with so many samples of one byte each."""
    place = content.index(b"stsz") - 4
    size = int.from_bytes(content[place : place + 4])
    sizes = struct.pack(">I4sIII", 20, b"stsz", 0, 1, samples)
    sizes += struct.pack(">I4s", size - 20, b"free") + bytes(size - 28)
    changed = bytearray(content[:place] + sizes + content[place + size :])
    struct.pack_into(">I", changed, changed.index(b"stts") + 12, samples)
    struct.pack_into(">I", changed, changed.index(b"stsc") + 16, samples)
    return bytes(changed)


@pytest.mark.parametrize("samples", [20_000_000, 2**32 - 1])
def test_an_index_of_more_samples_than_bytes_is_not_built(tmp_path, whole, samples):
    path = tmp_path / "claims.mp4"
    path.write_bytes(claiming(whole.read_bytes(), samples))
    size = path.stat().st_size
    refused(path, tmp_path, f"damaged: its index has {samples} samples, in {size} bytes")


def test_a_fragment_of_more_samples_than_bytes_is_not_built(tmp_path):
    flags = {"movflags": "frag_keyframe+empty_moov"}
    path = encode(tmp_path / "fragments.mp4", 50, container_options=flags)
    assert probe_video(path).frames == 50
    content = bytearray(path.read_bytes())
    struct.pack_into(">I", content, content.index(b"trun") + 8, 20_000_000)
    path.write_bytes(content)
    assert "its index has 200000" in probe_video(path).error


def test_packets_beyond_the_limit_are_not_read(tmp_path, monkeypatch):
    """MPEG-TS states no number of frames: the limit has to end the loop."""
    path = encode(tmp_path / "long.ts", 200)
    read = []
    monkeypatch.setattr("actionspan.dataset.video_facts.still_working", lambda: read.append(1))
    error = probe_video(path, LimitSettings(max_frames=20)).error
    assert error == "more frames than video.max_frames, 20; cut the video or raise it"
    assert len(read) <= 21


def test_sound_of_half_a_byte_a_sample_is_no_claim(tmp_path):
    """QuickTime counts the samples of compressed sound too; FFmpeg takes them by their chunks."""
    how = {"codec": "pcm_s16le", "rate": 8000, "seconds": 1.0}
    path = write_tone(tmp_path / "sound.mov", (0.5,), **how)
    content = bytearray(path.read_bytes())
    size = len(content)
    place = content.index(b"stsz", content.index(b"stsz") + 4)
    assert struct.unpack_from(">I", content, place + 12) == (8000,)
    struct.pack_into(">I", content, place + 12, 2 * size)
    path.write_bytes(content)
    assert claimed_samples(path) <= size
    assert (probe_video(path).error, probe_video(path).frames) == ("", 25)
    struct.pack_into(">I", content, content.index(b"stsz") + 12, 2 * size)  # the pictures'
    path.write_bytes(content)
    assert claimed_samples(path) == 2 * size


def box(kind, content):
    return struct.pack(">I4s", 8 + len(content), kind) + content


def packed(header, stated=None):
    size = struct.pack(">I", len(header) if stated is None else stated)
    return box(b"cmov", box(b"dcom", b"zlib") + box(b"cmvd", size + zlib.compress(header)))


def with_packed_header(whole, stated=None, first=b"", inside=b"moov", times=1):
    """Compress the header of an MP4 as QuickTime once did; `stated`: the size that it claims."""
    content = whole.read_bytes()
    place = content.index(b"moov") - 4
    length = struct.unpack_from(">I", content, place)[0]
    header = content[place : place + length]
    for _ in range(times):
        header = box(inside, packed(header, stated))
    place = content.index(b"mdat") - 4
    end = place + struct.unpack_from(">I", content, place)[0]
    # the offsets of samples stay as they were
    data = first or content[:place]
    whole.write_bytes(data + bytes(place - len(data)) + content[place:end] + header)
    return whole


def test_a_compressed_header_is_read_as_it_was(whole):
    frames = probe_video(whole).frames
    found = probe_video(with_packed_header(whole))
    assert (found.error, found.frames) == ("", frames)


@pytest.mark.parametrize("inside", [b"moov", b"udta"])
def test_a_compressed_header_of_more_than_64_mib_is_refused(tmp_path, whole, inside):
    path = with_packed_header(whole, (64 << 20) + 1, inside=inside)
    said = "its compressed header (cmov) states 67108865 bytes; at most 67108864"
    refused(path, tmp_path, re.escape(said))


@pytest.mark.parametrize("kind", [b"abcd", b"\x01\x02\x03\x04", b"RIFF"])
def test_no_first_box_hides_a_compressed_header(whole, kind):
    with_packed_header(whole, 1 << 30, first=box(kind, bytes(8)) + box(b"ftyp", b"isom" + bytes(4)))
    with pytest.raises(InputError, match="cmov|not a video"):
        open_container(whole)


def test_a_compressed_header_in_another_or_beside_it_is_refused(whole):
    """Each may unpack to a thousand times its size, so two to a million times."""
    plain = whole.read_bytes()
    content = with_packed_header(whole).read_bytes()
    whole.write_bytes(content + content[content.rindex(b"moov") - 4 :])
    with pytest.raises(InputError, match="more than one compressed header"):
        open_container(whole)
    whole.write_bytes(plain)
    with pytest.raises(InputError, match="more than one compressed header"):
        open_container(with_packed_header(whole, times=2))
