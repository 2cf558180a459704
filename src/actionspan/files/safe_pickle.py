"""Read pickles that hold only numeric numpy arrays in plain containers.

A pickle can run any code. Here no function that a file names is ever called, numpy's neither: given
a forged dtype they take a file's bytes for addresses. The few names by which numpy's arrays are
stored stand for what is done here: a dtype of numbers, and an array that is as large as its bytes.
"""

import math
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from actionspan.errors import InputError, printable

DEEPEST = 32  # containers in each other
_SHARED = 8  # times that the arrays and values may be counted which are in several places
_KINDS = "biuf"
_KEYS = (str, bytes, bool, int)


class _Refused(Exception):
    """The file asks for something other than numbers; the message says for what."""


class _Name(NamedTuple):
    """A name that stands for a function or a type, which is not called."""

    text: str


class _DType:
    """A dtype that is being read: its state says the order of its bytes."""

    def __init__(self, code: Any, *_: Any) -> None:
        code = code.decode("latin1") if isinstance(code, bytes) else code
        try:
            self.dtype = np.dtype(str(code)[:8])
        except (TypeError, ValueError):
            raise _Refused("it holds an array of an unknown kind") from None
        if self.dtype.kind not in _KINDS:
            raise _Refused(f"it holds {self.dtype.name} arrays")

    def set_state(self, state: Any) -> None:
        order: Any = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "=", "|") or any(state[2:5]):
            raise _Refused("it holds an array of a forged kind")
        self.dtype = self.dtype.newbyteorder(order)

    def array(self, data: Any, shape: Any, *, fortran: bool) -> np.ndarray[Any, Any]:
        """Return the array of these bytes, which it shares."""
        data = data.encode("latin1") if isinstance(data, str) else data  # from Python 2
        plain = isinstance(shape, tuple) and all(type(length) is int for length in shape)
        if not plain or not isinstance(data, bytes | bytearray) or len(shape) > DEEPEST:
            raise _Refused("it holds an array without its bytes")
        if min(shape, default=0) < 0 or math.prod(shape) * self.dtype.itemsize != len(data):
            raise _Refused(f"it holds {len(data)} bytes for an array of another size")
        return np.frombuffer(data, self.dtype).reshape(shape, order="F" if fortran else "C")


class _Array:
    """An array that is being read: it has no bytes before its state."""

    value: np.ndarray[Any, Any] | None = None

    def set_state(self, state: Any) -> None:
        shape, dtype, fortran, data = state[-4:]  # behind the version
        if not isinstance(dtype, _DType):
            raise _Refused("it holds an array without a kind")
        self.value = dtype.array(data, shape, fortran=bool(fortran))


def _scalar(dtype: _DType, data: Any) -> Any:
    return dtype.array(data, (), fortran=False)[()]


def _from_buffer(data: Any, dtype: _DType, shape: Any, order: Any) -> Any:
    return dtype.array(data, shape, fortran=order == "F")


def _encode(text: str, encoding: str) -> bytes:
    """Return the bytes of an array from protocols 0 to 2, which store them as latin-1 text."""
    return text.encode("latin1") if encoding == "latin1" else b""


_BUILDERS: dict[str, Callable[..., Any]] = {"numpy.dtype": _DType, "_codecs.encode": _encode}
for _core in ("core", "_core"):  # of numpy 1 and 2
    _BUILDERS[f"numpy.{_core}.multiarray._reconstruct"] = lambda *_: _Array()
    _BUILDERS[f"numpy.{_core}.multiarray.scalar"] = _scalar
    _BUILDERS[f"numpy.{_core}.numeric._frombuffer"] = _from_buffer


class _Bounded:
    """A file that is never asked for more bytes than it has."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size = file, os.fstat(file.fileno()).st_size
        self.readline = file.readline

    def read(self, size: int) -> bytes:
        data = self._file.read(max(0, min(size, self.size - self._file.tell())))
        if len(data) < size:
            raise EOFError
        return data


_InPython: Any = pickle._Unpickler  # its memory is that of what it has read, unlike the one in C


class _Reader(_InPython):  # type: ignore[misc]
    dispatch = dict(_InPython.dispatch)

    def __init__(self, file: _Bounded) -> None:
        super().__init__(file, encoding="latin1")
        self._file, self._encoded = file, 0

    def find_class(self, module: str, name: str) -> Any:
        """Return the name of something that is known, or refuse."""
        text = f"{module}.{name}"
        if text not in _BUILDERS and text != "numpy.ndarray":
            raise _Refused(f"it asks for {printable(text[:200])}")
        return _Name(text)

    def persistent_load(self, pid: Any) -> Any:
        """Refuse."""
        raise _Refused("it asks for something outside the file")

    def load_reduce(self) -> None:
        given = self.stack.pop()
        name = self.stack[-1]
        if not isinstance(name, _Name) or name.text not in _BUILDERS:
            raise _Refused("it calls what is not a function of arrays")
        self.stack[-1] = _BUILDERS[name.text](*given)
        if name.text == "_codecs.encode":  # again and again of the same text
            self._encoded += len(self.stack[-1])
            if self._encoded > self._file.size:
                raise _Refused("it holds more than its size")

    def load_build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], _Array | _DType):
            raise _Refused("it changes what is not an array")
        self.stack[-1].set_state(state)

    def load_bytearray8(self) -> None:
        self.append(bytearray(self.read(int.from_bytes(self.read(8), "little"))))

    def load_other(self) -> None:
        raise _Refused("it makes an object of its own")

    def load_append(self) -> None:
        _want(list, self.stack[-2])
        super().load_append()

    def load_appends(self) -> None:
        _want(list, self.metastack[-1][-1])
        super().load_appends()

    def load_setitem(self) -> None:
        _want(dict, self.stack[-3])
        _check_keys(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self) -> None:
        _want(dict, self.metastack[-1][-1])
        _check_keys(self.stack[::2])
        super().load_setitems()

    def load_dict(self) -> None:
        _check_keys(self.stack[::2])
        super().load_dict()

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8
    dispatch[pickle.APPEND[0]] = load_append
    dispatch[pickle.APPENDS[0]] = load_appends
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.DICT[0]] = load_dict
    for _code in (
        (pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX)
        + (pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER)
        + (pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET)
    ):
        dispatch[_code[0]] = load_other


def _want(kind: type, value: Any) -> None:
    if type(value) is not kind:
        raise _Refused("it changes what is not a list or a dictionary")


def _check_keys(keys: list[Any]) -> None:
    """Refuse keys whose hashes can be made to collide, which takes for ever."""
    if not all(isinstance(k, _KEYS) and not (isinstance(k, int) and abs(k) >> 32) for k in keys):
        raise _Refused("it holds a dictionary whose keys are not texts")


class _Plain:
    """Puts arrays into the containers, and counts the contents each time they are reached."""

    def __init__(self, size: int) -> None:
        # no value takes less than a byte of the file, and no array less than its own bytes
        self.left = _SHARED * size

    def __call__(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, _Array):
            if value.value is None:
                raise _Refused("it holds an array without its bytes")
            value = value.value
        self.left -= max(1, value.nbytes if isinstance(value, np.ndarray) else 1)
        if self.left < 0 or depth > DEEPEST:
            what = "more than its size" if self.left < 0 else f"more than {DEEPEST} containers"
            raise _Refused(f"it holds {what}{' in each other' * (self.left >= 0)}")
        if isinstance(value, list | tuple) and not isinstance(value, _Name):
            return type(value)([self(item, depth + 1) for item in value])
        if isinstance(value, dict):
            return {key: self(item, depth + 1) for key, item in value.items()}
        plain = isinstance(value, str | bytes | bool | int | float | np.generic | np.ndarray)
        if value is not None and not plain:
            raise _Refused("it holds something else")
        return value


def load_arrays(path: Path) -> Any:
    """Read a pickle of numpy arrays, numbers, texts, lists, tuples and dictionaries.

    Arrays of whole numbers, of floating point or of truth values are read, no others. They may be
    read-only. A file that says that it holds more than its bytes can, or that is nested deeper than
    `DEEPEST`, is refused.

    Raises:
        InputError: The file is missing, damaged, or asks for anything else.
    """
    try:
        with path.open("rb") as file:
            source = _Bounded(file)
            return _Plain(source.size)(_Reader(source).load())
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except MemoryError:
        raise InputError(f"{path}: more than there is memory for") from None
    except _Refused as error:
        raise InputError(f"{path}: not a pickle of numeric arrays alone: {error}") from None
    except Exception as error:  # damaged pickles raise nearly anything
        raise InputError(f"{path}: a damaged pickle: {type(error).__name__}") from None
