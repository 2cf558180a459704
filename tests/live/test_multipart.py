"""Parts of a multipart stream: each picture once and whole, whatever is between them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.live import connection
from actionspan.live.connection import Parts, find_boundary

BOUNDARY = b"--next"


def picture(number, size=50):
    """Return what begins and ends as a JPEG does."""
    return b"\xff\xd8" + number.to_bytes(2, "big") + bytes(size) + b"\xff\xd9"


def part(content, length=None, kind=b"image/jpeg", line=b"\r\n"):
    said = [] if length is None else [b"Content-Length: %d" % length]
    return line.join([BOUNDARY, b"Content-Type: " + kind, *said, b"", content]) + line


def cut(data, sizes=(4096,)):
    """Return the pictures of bytes that come in pieces of these sizes, in turn."""
    parts, found, number = Parts(BOUNDARY), [], 0
    while data:
        size = sizes[number % len(sizes)]
        found += parts.add(data[:size])
        data, number = data[size:], number + 1
    return [each.rstrip(b"\r\n") for each in found]


junk = st.binary(max_size=300).filter(lambda data: BOUNDARY not in data)


@given(
    between=st.lists(junk, min_size=12, max_size=12),
    lies=st.lists(st.none() | st.integers(-60, 10**10), min_size=12, max_size=12),
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=5),
    line=st.sampled_from([b"\r\n", b"\n"]),
)
@example(  # a length that ends where a later picture does
    between=[b""] * 12, lies=[None] * 6 + [199, None, 0, None, None, None], sizes=[283], line=b"\n"
)
def test_every_picture_comes_once_whatever_is_between(between, lies, sizes, line):
    pictures = [picture(number) for number in range(12)]
    data = b""
    for number, content in enumerate(pictures):
        length = None if lies[number] is None else max(0, len(content) + lies[number])
        # nothing may be between a picture without a true length and the next boundary: it is its
        after = between[number] if lies[number] == 0 else b""
        data += part(content, length, line=line) + after
    assert cut(data + BOUNDARY, sizes) == pictures


CONTENT = picture(1)
ONE = part(CONTENT, len(CONTENT))


@pytest.mark.parametrize(
    ("data", "pictures"),
    [
        (ONE, 1),  # a true length does not wait for the next part
        (part(CONTENT), 0),
        (part(b"{}", 2, b"application/json") + ONE + part(b"x", 1, b"text"), 1),  # other kinds
        (ONE + BOUNDARY + b"--\r\n" + ONE, 2),  # what has ended may begin again
    ],
)
def test_a_picture_comes_when_it_is_whole(data, pictures):
    assert cut(data) == [CONTENT] * pictures


def test_what_never_ends_is_a_line(monkeypatch):
    monkeypatch.setattr(connection, "_MOST", 1 << 20)
    parts = Parts(BOUNDARY)
    assert list(parts.add(part(b"", 1 << 32))) == []
    with pytest.raises(InputError, match="a part of more than 1 MiB: no boundary ends it"):
        list(parts.add(bytes(1 << 20)))


def test_bytes_without_a_boundary_are_not_kept():
    parts = Parts(BOUNDARY)
    for _ in range(200):
        assert list(parts.add(bytes(100_000))) == []
    assert len(parts._data) < 200_000


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (part(b""), BOUNDARY),
        (b"\r\n" + part(b"", 7, line=b"\n"), BOUNDARY),
        (b"what a camera says first\r\n" + part(b""), BOUNDARY),
        (b"--a b\r\nContent-Type: text/plain\r\n\r\n", None),
        (b"<html>--next</html>", None),
        (b"\x00\x00\x00 ftypisom", None),
        (b"", None),
    ],
)
def test_the_boundary_is_told_by_the_first_part(data, expected):
    assert find_boundary(data) == expected


@given(st.binary(max_size=4096))
@example(b"--x\n" + 2000 * b":" + b"--x\n" + 2000 * b":")
def test_any_bytes_are_looked_at(data):
    found = find_boundary(data)
    list(Parts(found or BOUNDARY).add(data))
