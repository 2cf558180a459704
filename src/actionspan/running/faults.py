"""Whose fault an error is: that of an item (a video), of the machine's state, or of neither."""

import errno
import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from actionspan.errors import printable
from actionspan.settings import Checked, option

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# HDF5 has the number in its text alone; the storage module has these words
_NO_ROOM_TEXT = re.compile(
    rf"errno = ({'|'.join(map(str, _NO_ROOM))})\b|the disk is full|the disk quota is used up"
    r"|the file is larger than a file may be"
)
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class FaultSettings(Checked):
    """What happens where the work on a video fails."""

    on_bad_input: Literal["skip", "fail"] = option(
        "skip", "note the reason and go on with the other videos, or stop after them"
    )
    stall_seconds: float = option(
        600.0,
        "the work on a video is ended after so long without progress; 0: never",
        unit="seconds",
        least=0,
    )


def no_room(error: BaseException) -> bool:
    """Return whether an error, or one that it came from, says that the disk is full."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _NO_ROOM:
            return True
        if _NO_ROOM_TEXT.search(str(seen)):
            return True
        seen = seen.__context__
    return False


def described(error: BaseException) -> str:
    """Return an error that nobody foresaw on a line, with its place in the package."""
    lines = str(error).splitlines() or [""]
    text = printable(lines[0])[:300]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(_PACKAGE) and path.parent != Path(__file__).parent:
            return f"{type(error).__name__}: {text} ({path.relative_to(_PACKAGE)}:{frame.lineno})"
    return f"{type(error).__name__}: {text}"
