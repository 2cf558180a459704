"""`anet_anno_action.json`: a JSON object with an entry for each video and nothing around them.

It holds duration in seconds, number of frames, segments and labels; no subset, no frame rate.
"""

import json
from collections.abc import Sequence

from actionspan.dataset.formats.activitynet import annotation_items, parse_object, read_entries
from actionspan.dataset.formats.records import Reading, Record
from actionspan.errors import InputError


def sniff(text: str) -> bool:
    """Return whether the text is JSON, ActivityNet's official form being tried before."""
    return text.lstrip()[:1] in ("{", "[")


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the form.

    Raises:
        InputError: The text is not JSON or has no annotations; if `strict`, an entry is not sound.
    """
    content = parse_object(file, text)
    if content and not any(
        isinstance(entry, dict) and "annotations" in entry for entry in content.values()
    ):
        raise InputError(
            f'{file}: neither ActivityNet annotations (an object "database")'
            " nor anet_anno_action.json (an object with annotations for each video)"
        )
    return read_entries(file, content, "", "duration_second", strict, {"annotations": list})


def write(records: Sequence[Record]) -> str:
    """Return the records in this form; a duration or number of frames not known is left out."""
    content = {
        record.video_id: {
            **({"duration_second": record.seconds} if record.seconds else {}),
            **({"duration_frame": record.frames} if record.frames else {}),
            "annotations": annotation_items(record),
        }
        for record in records
    }
    return json.dumps(content, indent=1) + "\n"
