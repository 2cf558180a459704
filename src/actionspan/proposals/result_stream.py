"""The videos of an ActivityNet result file one after another: a file may be larger than memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.files.json_stream import RepeatedMemberError, members
from actionspan.files.storage import read_json


def read_results(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each video id of `{"results": {video_id: …}}` with what the file has of it.

    Other keys of the file are passed over.

    Raises:
        InputError: The file is missing, is not JSON in UTF-8 or has no such object.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from members(file, "results")
    except RepeatedMemberError as error:
        raise InputError(f"{path}: {error}; keep one") from None
    except KeyError:
        read_json(path)
        raise InputError(
            f'{path}: not a result file: no proposals in it; write {{"results": {{video: '
            '[{"score": 0.9, "segment": [1.0, 2.5]}]}}'
        ) from None
    except (OSError, ValueError, RecursionError):
        read_json(path)  # names the line
        raise
