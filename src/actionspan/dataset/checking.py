"""Annotations without the rows that are none, wherever they go: said, a line for each."""

import sys

from actionspan.dataset.formats.records import Reading, Record, quoted


def drop_unsound(reading: Reading) -> list[Record]:
    """Reject instances that are none, and videos of which every row was rejected.

    Nobody knows what happens in such a video: it must not become one in which nothing does. Ends
    after a video are seen where its duration is known.

    Returns:
        The records of these videos, for what they say besides.

    Raises:
        InputError: The reading is strict.
    """
    for record in reading.records:
        sound = []
        for raw in record.instances:
            try:
                raw.checked(record.duration, record.fps)
            except ValueError as error:
                reading.reject(record.file, raw.row, str(error), record.video_id)
            else:
                sound.append(raw)
        record.instances = sound
    lost = {video_id for bad in reading.rejections for video_id in bad.video_ids}
    emptied = {
        record.video_id: record
        for record in reading.records
        if not record.instances and record.video_id in lost
    }
    for video_id, record in emptied.items():
        what = f"no row of video {quoted(video_id, 100)} is left: what happens in it is unknown"
        reading.reject(record.file, record.row, what, video_id)
    reading.records = [each for each in reading.records if each.video_id not in emptied]
    return list(emptied.values())


def report_left_out(reading: Reading) -> None:
    """Say on standard error what was left out: no table has it."""
    for bad in reading.rejections:
        print(f"left out {bad.line()}", file=sys.stderr)
