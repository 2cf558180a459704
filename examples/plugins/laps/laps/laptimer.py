"""Files of a lap timer: `LAPTIMER video`, then `start-end label` in each line."""

from actionspan.annotations.formats.records import RawInstance, Reading, Record


def sniff(text: str) -> bool:
    """Return whether a file is one of a lap timer."""
    return text.startswith("LAPTIMER ")


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Return the video of a file with its laps."""
    reading = Reading(strict=strict)
    head, *lines = text.splitlines()
    record = Record(file=file, row="1", video_id=head.split()[1])
    reading.records.append(record)
    for row, line in enumerate(lines, start=2):
        times, _, label = line.partition(" ")
        start, dash, end = times.partition("-")
        if dash:
            record.instances.append(RawInstance(row=str(row), start=start, end=end, label=label))
        else:
            reading.reject(file, str(row), "start-end is wanted", record.video_id)
    return reading
