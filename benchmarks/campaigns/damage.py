"""Ways to damage the bytes of a file."""

from collections.abc import Callable
from random import Random


def truncate(content: bytes, random: Random) -> bytes:
    """Cut the file off."""
    return content[: random.randrange(len(content) + 1)]


def zeros(content: bytes, random: Random) -> bytes:
    """Zero a stretch, as file systems do after a power cut."""
    first, length = _stretch(content, random)
    return content[:first] + bytes(length) + content[first + length :]


def flip(content: bytes, random: Random) -> bytes:
    """Flip a bit."""
    place = random.randrange(max(len(content), 1))
    changed = bytearray(content or b"\0")
    changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)


def scatter(content: bytes, random: Random) -> bytes:
    """Set a few bytes to anything, half of them near the beginning, where headers are."""
    changed = bytearray(content or b"\0")
    for _ in range(random.randint(1, 20)):
        limit = len(changed) if random.random() < 0.5 else min(len(changed), 512)
        changed[random.randrange(limit)] = random.choice(
            [0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)]
        )
    return bytes(changed)


def insert(content: bytes, random: Random) -> bytes:
    """Insert some bytes."""
    place = random.randrange(len(content) + 1)
    return content[:place] + random.randbytes(random.randint(1, 64)) + content[place:]


def remove(content: bytes, random: Random) -> bytes:
    """Leave a stretch out."""
    first, length = _stretch(content, random)
    return content[:first] + content[first + length :]


def repeat(content: bytes, random: Random) -> bytes:
    """Write a stretch twice."""
    first, length = _stretch(content, random)
    return content[: first + length] + content[first:]


def nothing(_content: bytes, _random: Random) -> bytes:
    """Leave an empty file."""
    return b""


def garbage(_content: bytes, random: Random) -> bytes:
    """Put random bytes in place of the file."""
    return random.randbytes(random.randint(1, 4096))


WAYS: tuple[Callable[[bytes, Random], bytes], ...] = (
    truncate,
    zeros,
    flip,
    scatter,
    insert,
    remove,
    repeat,
    nothing,
    garbage,
)
_WEIGHTS = (3, 3, 6, 4, 2, 2, 1, 1, 1)


def damaged(content: bytes, random: Random) -> tuple[bytes, str]:
    """Return the content damaged in one way, and the way's name."""
    (way,) = random.choices(WAYS, _WEIGHTS)
    return way(content, random), way.__name__


def _stretch(content: bytes, random: Random) -> tuple[int, int]:
    """Return the first byte and the length of a stretch, short or long."""
    if not content:
        return 0, 0
    first = random.randrange(len(content))
    longest = len(content) - first
    return first, random.randint(1, random.choice([min(longest, 64), longest]))
