"""`anet_anno_action.json`: a JSON object with an entry for each video and nothing around them.

An entry holds duration in seconds, number of frames, segments and labels, but no subset and no
frame rate.
"""

import json
from collections.abc import Sequence

from actionspan.annotations.formats.activitynet import entries_of, parse_object, read_entries
from actionspan.annotations.formats.records import Reading, Record
from actionspan.errors import InputError


def sniff(text: str) -> bool:
    """Return whether the text is JSON; ActivityNet's official format is tried before."""
    return text.lstrip()[:1] in ("{", "[")


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the format."""
    content = parse_object(file, text)
    if content and not any(
        isinstance(entry, dict) and "annotations" in entry for entry in content.values()
    ):
        raise InputError(
            f'{file}: neither ActivityNet annotations (an object "database")'
            " nor anet_anno_action.json (an object with annotations for each video)"
        )
    return read_entries(file, content, "", strict)


def write(records: Sequence[Record]) -> str:
    """Return the records in this format, without unknown durations and numbers of frames."""
    keys = {"duration_second": "seconds", "duration_frame": "frames"}
    return json.dumps(entries_of(records, keys), indent=1) + "\n"
