"""BORIS' project, .boris: JSON with observations of media files, their coded events, an ethogram.

An event has a time in seconds, a subject, a behaviour and modifiers; of a state event every second
one ends the bout of the one before; a point event ends where it starts. Times count over all files
of the first player; the project has their lengths. The label is the behaviour.

We write an observation for each video. One subject does one thing once at a time, so instances of
a label that overlap, and have the same subject or none, belong to several subjects. With the
keys of the page its ethogram has these, and a label with a point key has point events.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, zip_longest
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from actionspan.annotations.formats.parsing import items, objects, parse_json, peek_json
from actionspan.annotations.formats.records import (
    Bout,
    Reading,
    Record,
    media_name,
    positive,
    quoted,
    video_id_of,
)
from actionspan.annotations.formats.times import to_number
from actionspan.annotations.keys import LabelKey, first_of_each_label
from actionspan.errors import InputError, printable

_KEYS = ("behaviors_conf", "observations")
_EPOCH = "1970-01-01T00:00:00"  # the same records give the same file
_BEHAVIOUR_KEYS = ascii_lowercase + digits + ascii_uppercase  # one each, as long as they last
_PLAYERS = [str(player) for player in range(1, 9)]


def sniff(text: str) -> bool:
    """Return whether the text is a project."""
    if not text.lstrip().startswith("{") or not all(f'"{key}"' in text for key in _KEYS):
        return False
    content = peek_json(text)
    return isinstance(content, dict) and all(isinstance(content.get(key), dict) for key in _KEYS)


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read the observations of media files.

    Raises:
        InputError: It is JSON of another format.
    """
    content = parse_json(file, text)
    if not isinstance(content, dict) or not isinstance(content.get("observations"), dict):
        raise InputError(f"{file}: no object 'observations' as in a project of BORIS")
    ethogram = objects(content.get("behaviors_conf")).values()
    points = {
        str(each.get("code"))
        for each in ethogram
        if str(each.get("type")).startswith("Point event")
    }
    reading = Reading(strict=strict)
    for name, observation in objects(content["observations"]).items():
        row = f"observations.{printable(name)}"
        media = [str(each) for each in items(_of(observation, "file").get("1"))]
        found = [reading.record_of(file, row, video_id_of(each)) for each in media]
        facts = _of(observation, "media_info")
        for medium, record in zip(media, found, strict=True):
            if record is not None:
                record.seconds = record.seconds or positive(_of(facts, "length").get(medium))
                record.fps = record.fps or positive(_of(facts, "fps").get(medium))
        if not found:
            reading.reject(file, row, "an observation without a media file in the first player")
        lengths = [positive(_of(facts, "length").get(medium)) for medium in media]
        video_ids = [each.video_id for each in found if each]  # an event may be one of any of them
        for where, bout, problem in _bouts(row, observation, points):
            place, begin, misplaced = (0, 0.0, "") if problem else _shown(bout, lengths)
            if problem or misplaced:
                reading.reject(file, where, problem or misplaced, *video_ids)
            elif found and (record := found[place]) is not None:
                start, end, label, who, how = bout
                details = {"subject": who, "modifiers": how, "point": start == end}
                record.add(where, start - begin, end - begin, label, **details)
    return reading


def write(records: Sequence[Record], keys: Sequence[LabelKey] = ()) -> str:
    """Return a project with a behaviour for each label in its ethogram, and its key of `keys`."""
    by_label = first_of_each_label(keys)
    points = {label for label, key in by_label.items() if key.point}
    modifiers: dict[str, list[str]] = {}  # of each label
    subjects: dict[str, None] = {}
    observations: dict[str, Any] = {}
    for record in records:
        media = media_name(record)
        events: list[list[Any]] = []
        free: dict[tuple[str, str, str], float] = {}  # when a subject's last such event ended
        bouts = record.bouts()
        for _, _, label, _, how in bouts:
            modifiers.setdefault(label, []).append(how)
        for start, end, label, who, how in sorted(bouts):
            subject, number = who, 1
            while free.get((label, subject, how), start) > start:
                number += 1
                subject = f"{who or 'subject'} {number}"
            free[label, subject, how] = start if label in points else end
            if subject:
                subjects[subject] = None
            times = (start,) if label in points else (start, end)
            events += [[time, subject, label, how, ""] for time in times]
        observations[record.video_id] = {
            "file": {player: [media] if player == "1" else [] for player in _PLAYERS},
            **{"type": "MEDIA", "date": _EPOCH, "description": "", "time offset": 0.0},
            "events": sorted(events, key=lambda event: event[0]),
            **{"observation time interval": [0, 0], "independent_variables": {}},
            "media_info": {
                "length": {media: record.seconds} if record.seconds else {},
                "fps": {media: record.fps} if record.fps else {},
                **{"hasVideo": {media: True}, "hasAudio": {media: record.has_sound}},
                "offset": {"1": 0.0},
            },
        }
    modifiers |= {label: [] for label in by_label if label not in modifiers}
    taken = {each.key for each in keys}
    free_keys = (key for key in _BEHAVIOUR_KEYS if key not in taken)
    behaviours = {
        str(number): {
            **{"type": "Point event" if label in points else "State event"},
            **{"key": by_label[label].key if label in by_label else next(free_keys, "")},
            **{"code": label, "description": "", "color": ""},
            **{"category": "", "modifiers": _modifier_sets(texts), "excluded": ""},
            "coding map": "",
        }
        for number, (label, texts) in enumerate(modifiers.items())
    }
    subjects |= dict.fromkeys(key.subject for key in keys if key.subject)
    named = {
        str(number): {"key": "", "name": name, "description": ""}
        for number, name in enumerate(subjects)
    }
    content = {
        **{"time_format": "hh:mm:ss", "project_date": _EPOCH, "project_name": "actionspan"},
        **{"project_description": "", "project_format_version": "7.0"},
        **{"subjects_conf": named, "behaviors_conf": behaviours, "observations": observations},
        **{"behavioral_categories": [], "independent_variables": {}, "coding_map": {}},
        **{"behaviors_coding_map": [], "converters": {}},
    }
    return json.dumps(content, indent=1) + "\n"


def _modifier_sets(texts: Iterable[str]) -> dict[str, Any]:
    """Return the ethogram's modifiers of a behaviour: a set for each place between bars."""
    rows = [text.split("|") for text in dict.fromkeys(texts) if text]
    return {
        str(place): {"name": "", "type": 0, "values": [*filter(None, dict.fromkeys(values))]}
        for place, values in enumerate(zip_longest(*rows, fillvalue=""))
    }


def _of(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _bouts(
    row: str, observation: Mapping[str, Any], points: set[str]
) -> Iterator[tuple[str, Bout, str]]:
    """Yield the place of each event of an observation, with its bout or its fault."""
    begun: dict[tuple[str, str, str], tuple[float, str]] = {}
    events = []
    none = 0.0, 0.0, "", "", ""
    for place, event in enumerate(items(observation.get("events"))):
        where = f"{row}.events[{place}]"
        time = to_number(event[0]) if isinstance(event, list) and len(event) > 2 else None
        if time is None:
            yield where, none, "not an event: time in seconds, subject, behaviour, …"
            continue
        modifiers = str(event[3] or "") if len(event) > 3 else ""
        key = str(event[2]), str(event[1] or ""), modifiers
        if key[0] in points:
            yield where, (time, time, *key), ""
        else:
            events.append((time, place, key, where))
    for time, _, key, where in sorted(events):
        if key in begun:
            start, first = begun.pop(key)
            yield first, (start, time, *key), ""
        else:
            begun[key] = time, where
    for key, (_, where) in begun.items():
        yield where, none, f"{quoted(key[0])} begins and never ends"


def _shown(bout: Bout, lengths: Sequence[float]) -> tuple[int, float, str]:
    """Return the place and begin of the video that the player shows, or the fault."""
    start, end, label, *_ = bout
    if len(lengths) < 2:
        return 0, 0.0, ""
    if not all(lengths):
        return 0, 0.0, "several media files, and the length of one is not known"
    begins = [0.0, *accumulate(lengths[:-1])]
    place = max(bisect_right(begins, start) - 1, 0)
    if end > begins[place] + lengths[place]:
        return 0, 0.0, f"{quoted(label)} lasts over the end of a media file"
    return place, begins[place], ""
