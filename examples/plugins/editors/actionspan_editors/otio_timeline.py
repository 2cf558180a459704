"""OpenTimelineIO's timeline (.otio), from which its adapters make EDL or Final Cut Pro XML.

We write one video track with a clip for each event, one after another. That is what every editor
and EDL can hold; events of a video may overlap, clips of a track may not. The clip's source range
is the event, in frames of the video, its name is the label, and its metadata hold subject and
modifiers. The timeline's metadata hold what is known of the videos, also of those without events.

We read the clips of all video tracks but those that are disabled. A clip without a name is an
`action`. Where its media begins at a time code, times count from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from actionspan.annotations.formats.parsing import objects, parse_json
from actionspan.annotations.formats.records import (
    FACTS,
    UNLABELLED,
    Reading,
    Record,
    media_name,
    positive,
    quoted,
    subset_name,
    video_id_of,
)
from actionspan.annotations.formats.times import frames_of
from actionspan.errors import InputError
from actionspan_editors import details_of, library

SUFFIXES_READ = (".otio",)  # in a folder of annotations

_OURS = "actionspan"  # the key of our metadata


def sniff(text: str) -> bool:
    """Return whether the text is an object with a schema of OpenTimelineIO."""
    return text.lstrip().startswith("{") and '"OTIO_SCHEMA"' in text


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Return the videos of a timeline.

    Raises:
        InputError: It is no timeline, or `opentimelineio` is not installed.
    """
    content = parse_json(file, text)  # the library crashes where a text is nested too deeply
    otio = library("opentimelineio")
    try:
        timeline = otio.adapters.read_from_string(text, "otio_json")
    except (ValueError, KeyError, otio.exceptions.OTIOError) as error:
        what = " ".join(str(error).split())
        raise InputError(f"{file}: not a timeline of OpenTimelineIO: {what}") from None
    if not isinstance(timeline, otio.schema.Timeline):
        kind = type(timeline).__name__
        raise InputError(f"{file}: not a timeline of OpenTimelineIO, but its {kind}")
    reading = Reading(strict=strict)
    ids: dict[str, str] = {}  # by the name of the media file
    ours = objects(objects(content.get("metadata")).get(_OURS))
    for video_id, facts in objects(ours.get("videos")).items():
        if record := reading.record_of(file, f"metadata.{_OURS}.videos", video_id):
            ids[video_id_of(str(facts.get("media")))] = video_id
            record.subset = subset_name(facts.get("subset"), strict) or ""
            record.seconds, record.fps = positive(facts.get("seconds")), positive(facts.get("fps"))
            record.frames = int(positive(facts.get("frames")))
    for number, clip in enumerate(_clips(timeline), start=1):
        _add(file, f"clip {number}", clip, ids, reading)
    return reading


def write(records: Sequence[Record]) -> str:
    """Return a timeline with the events of all videos, times in whole frames.

    Raises:
        InputError: The frame rate of a video is not known, or `opentimelineio` is not installed.
    """
    otio = library("opentimelineio")

    def frames(start: int, end: int, rate: float) -> Any:
        first, length = (otio.opentime.RationalTime(each, rate) for each in (start, end - start))
        return otio.opentime.TimeRange(first, length)

    track = otio.schema.Track("events", kind=otio.schema.TrackKind.Video)
    videos = {}
    for record in records:
        rate, name = record.fps, media_name(record)
        if not rate:
            what = "a timeline needs its frame rate: give --videos FOLDER, or a column fps"
            raise InputError(f"video {quoted(record.video_id)}: {what}")
        facts = {fact: value for fact in FACTS if (value := getattr(record, fact))}
        videos[record.video_id] = {"media": name, **facts}
        count = record.frames or round(record.seconds * rate)
        for raw, (start, end, label) in zip(record.instances, record.parsed(), strict=True):
            media = otio.schema.ExternalReference(
                quote(name), frames(0, count, rate) if count else None
            )
            media.name = name
            first, last = frames_of((start, end), rate)
            shown = frames(first, last + 1, rate)
            track.append(otio.schema.Clip(label, media, shown, metadata={_OURS: raw.details}))
    timeline = otio.schema.Timeline("actionspan", metadata={_OURS: {"videos": videos}})
    timeline.tracks.append(track)
    return str(otio.adapters.write_to_string(timeline, "otio_json")) + "\n"


def _clips(timeline: Any) -> Iterator[Any]:
    """Yield the clips of the video tracks; sound that lies next to them is no second event."""
    for track in timeline.video_tracks():
        yield from (clip for clip in track.find_clips() if clip.enabled)


def _add(file: str, row: str, clip: Any, ids: Mapping[str, str], reading: Reading) -> None:
    media = clip.media_reference
    name = getattr(media, "target_url", "") or media.name
    if not name:
        reading.reject(file, row, "a clip without a media file")
        return
    video_id = video_id_of(unquote(name))
    record = reading.record_of(file, row, ids.get(video_id, video_id))
    if record is None:
        return
    shown, whole = clip.source_range or media.available_range, media.available_range
    times = [shown.start_time, shown.duration] if shown else []
    times += [whole.start_time] if whole else []
    if not shown or any(time.rate <= 0 for time in times):
        reading.reject(file, row, "no source range with a frame rate", record.video_id)
        return
    start, length, *begin = (time.value / time.rate for time in times)
    start -= sum(begin)
    label = clip.name or UNLABELLED
    details = details_of(clip.metadata.get(_OURS))
    ends = round(start, 6), round(start + length, 6)
    record.add(row, *ends, label, **details, unlabelled=not clip.name)
