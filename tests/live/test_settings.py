"""SOURCE: what it means, and that no password is ever shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.live.settings import SCHEMES, parse_source, redacted

ODD = st.text(st.sampled_from("aB3#?/@:&=%+ ~."), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("holiday.mp4", "file", "holiday"),
        ("/films/a b.mkv", "file", "a b"),
        ("camera:0", "camera", "camera-0"),
        ("camera:12", "camera", "camera-12"),
        ("rtsp://10.0.0.5:554/stream1", "address", "10.0.0.5-554-stream1"),
        ("http://cam.example/video.mjpg?user=a&pwd=b", "address", "cam.example-video.mjpg"),
        ("rtsp://me:secret@host/live", "address", "host-live"),
        ("HTTPS://host/x", "address", "host-x"),
    ],
)
def test_forms(text, kind, name):
    source = parse_source(text)
    assert (source.kind, source.name) == (kind, name)
    assert source.place == (text if kind != "camera" else text.split(":")[1])


CAMERAS = ["camera:", "camera:-1", "camera:front", "camera:²", "camera:99999"]
ADDRESSES = ["ftp://me:secret@host/x", "rtsp://", "gopher://secret@", "rtsp:/me:secret@host/x"]


@pytest.mark.parametrize("text", [*CAMERAS, *ADDRESSES])
def test_any_other_source_is_refused_by_what_it_may_be_without_a_password(text):
    with pytest.raises(InputError) as error:
        parse_source(text)
    words = ["camera:0"] if text in CAMERAS else SCHEMES
    assert all(word in str(error.value) for word in words)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rtsp://host/x", "rtsp://host/x"),
        ("rtsp://me:secret@host:554/x", "rtsp://***@host:554/x"),
        ("rtsp://me:se/cr@et@host/x", "rtsp://***@host/x"),
        ("rtsp://me:se?cret@host/x", "rtsp://***"),
        ("rtsp://me:se#cret@host/x", "rtsp://***"),
        ("http://host/x?token=secret", "http://host/x?***"),
        ("http://host/x?token=se@cret", "http://***"),
        ("rtsp://host/user=me_password=secret_channel=1", "rtsp://host/user=me_password=***"),
        ("rtsp://host/user=me&pwd=secret&channel=1", "rtsp://host/user=me&pwd=***&channel=1"),
        ("rtsp://@host/x", "rtsp://***@host/x"),
    ],
)
def test_what_may_be_secret_is_hidden(address, shown):
    assert redacted(address) == shown


@given(user=ODD, password=ODD)
def test_no_password_is_shown_whatever_is_in_it(user, password):
    source = parse_source(f"rtsp://{user}:<{password}>@camera/live")
    shown = f"{source.shown} {source.name} {source!r}"
    assert "<" not in shown
    assert ">" not in shown
