"""Forged pickles: what a hostile person would put in place of a file of features."""

import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

_CORE = np._core  # type: ignore[attr-defined]
_SCALAR, _RECONSTRUCT = _CORE.multiarray.scalar, _CORE.multiarray._reconstruct


class Call:
    """Pickled as a call of a function, with a state if it has one."""

    def __init__(self, function: Callable[..., Any], *words: Any, state: Any = None) -> None:
        self._reduced = (function, words) if state is None else (function, words, state)

    def __reduce__(self) -> Any:
        """Return the call."""
        return self._reduced


def _object_type() -> Call:
    """Return the type of Python objects, its flags forged to those of plain numbers."""
    return Call(np.dtype, "O8", False, True, state=(3, "|", None, None, None, 8, 8, 0))


def _pointer(random: Random) -> Any:
    return Call(
        _SCALAR, _object_type(), struct.pack("<Q", random.choice([0x41414141_41414141, 8, 0]))
    )


def _pointers(random: Random) -> Any:
    state = (1, (4,), _object_type(), False, struct.pack("<4Q", *[random.randrange(2**40)] * 4))
    return Call(_RECONSTRUCT, np.ndarray, (0,), b"b", state=state)


def _forged_type(random: Random) -> Any:
    code = random.choice(
        ["f4", "i8", "V16", "U4", "S4", "M8", "O8", "f2", "c16", "V0", "b1", "i4,f4"]
    )
    size, flags = random.choice([0, 1, 4, 8, 16, -1, 2**31]), random.choice([0, 1, 63, 255, -1])
    fields = random.choice([None, {"a": (np.dtype("f4"), 0)}, {"a": (np.dtype("f4"), 10**6)}])
    names = random.choice([None, ("a",), ("a", "b")])
    state = (3, random.choice("<>|="), None, names, fields, size, size, flags)
    forged = Call(np.dtype, code, False, True, state=state)
    if random.random() < 0.5:
        return Call(_SCALAR, forged, random.randbytes(random.choice([0, 4, 8, 16])))
    shape = random.choice([(2, 2), (0,), (-1,), (2**40,), (2**62, 4), (1,) * 70])
    content = random.randbytes(random.choice([0, 16, 64]))
    rebuilt = (1, shape, forged, random.random() < 0.5, content)
    return Call(_RECONSTRUCT, np.ndarray, (0,), b"b", state=rebuilt)


def _command(random: Random) -> Any:
    return random.choice(
        [
            Call(os.system, "touch PWNED"),
            Call(eval, "open('PWNED', 'w')"),
            Call(exec, "open('PWNED', 'w')"),
            Call(Path, "a"),
            Call(getattr, Path, "cwd"),
            Call(np.load, "a.npy"),
            Call(np.fromfile, "/etc/hostname", "u1"),
            Call(np.memmap, "/etc/hostname", "u1"),
            Call(bytearray, 2**40),
            Call(__import__, "os"),
        ]
    )


def _deep(random: Random) -> Any:
    """Return the bytes of lists inside each other, deeper than Python's stack."""
    depth = random.choice([500, 20_000, 200_000])
    return b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b"."


def _doubled(random: Random) -> Any:
    """Return a list of two lists of two lists …: few bytes, 2⁴⁰ entries."""
    inner: Any = 1.0
    for _ in range(random.choice([20, 40, 200])):
        inner = [inner, inner] if random.random() < 0.9 else {"a": inner, "b": inner}
    return inner


def _endless(random: Random) -> Any:
    holder: Any = random.choice([[], {}])
    if isinstance(holder, list):
        holder.append(holder)
    else:
        holder["a"] = holder
    return holder


def _empty(random: Random) -> Any:
    """Return an array that is made of memory as it is, never written."""
    return Call(np.ndarray, random.choice([(4, 4), (2**29,), (2**40, 2), (3, 10**9)]))


def _odd(random: Random) -> Any:
    """Return what is no matrix."""
    return random.choice(
        [
            None, 1, 1.0, "text", b"bytes", [], {}, (), [[]], {1: np.ones((2, 3))},
            {"a": 1, "b": 2},
            [1, [2, 3]], [np.ones(3), np.ones(2)], np.ones((2, 3, 4)), np.ones((0, 3)), {1, 2},
            np.array(["a"]), np.array([None]), np.ones((2, 3), complex), np.ones((2, 3), bool),
            np.full((2, 3), 1e300), np.full((2, 3), np.nan), np.full((2, 3), 10**18), [10**400, 1],
            np.datetime64("2026"), np.float32(1), [np.float64(2), 1], [[1, 2], [3, 4]], range(5),
            np.ma.masked_array([1.0]), np.rec.array([(1, 2.0)]), {"a\n\x1b[2J": [1]},
            np.ones((3, 4)).T,
        ]
    )  # fmt: skip


_FORMS = (_pointer, _pointers, _forged_type, _command, _deep, _doubled, _endless, _empty, _odd)


def forged(random: Random) -> bytes:
    """Return a pickle."""
    content = random.choice(_FORMS)(random)
    if isinstance(content, bytes) and content[:1] == b"\x80":
        return content
    if random.random() < 0.3:
        content = random.choice([[content], {"a": content}, [content, content], (content, 1)])
    try:
        return pickle.dumps(content, protocol=random.choice([0, 2, 4, 5]))
    except Exception:  # not every object can be written in every protocol
        return pickle.dumps(content, protocol=4)
