"""ELAN's .eaf: an XML document of one video, with annotations in milliseconds in its tiers.

Annotations with times become instances, of any tier; the label is the value, or the name of the
tier where the value is empty, and the subject is the tier's participant. Those that only refer to
others are not segments. The video is the first media file with frames, by its stem, or the
.eaf's own stem.

A tier holds no two annotations at a time, so we write for each subject as many tiers as its
overlapping instances need.
"""

from collections.abc import Sequence
from itertools import count
from pathlib import PurePath
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from actionspan.annotations.formats.parsing import parse_xml, root_name
from actionspan.annotations.formats.records import Reading, Record, media_name, quoted, video_id_of
from actionspan.annotations.formats.times import to_number
from actionspan.annotations.names import VIDEO_SUFFIXES
from actionspan.errors import InputError

SUFFIX = ".eaf"  # a file of this format is about one video
_TIER = "actions"
_TYPE = "default-lt"
_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_MPEG = dict.fromkeys((".mpg", ".mpeg"), "video/mpeg")
_KINDS = {".mp4": "video/mp4", ".mov": "video/quicktime"} | _MPEG  # ELAN calls others video/*
_EPOCH = "1970-01-01T00:00:00+00:00"  # the same records give the same file


def sniff(text: str) -> bool:
    """Return whether the text is an ELAN document."""
    return root_name(text) == "ANNOTATION_DOCUMENT"


def read(file: str, text: str, strict: bool = False) -> Reading:
    """Read a document.

    Raises:
        InputError: It is not XML of this format, or counts time otherwise than in milliseconds.
    """
    root = parse_xml(file, text)
    reading = Reading(strict=strict)
    header = root.find("HEADER")
    unit = "" if header is None else header.get("TIME_UNITS", "milliseconds")
    if unit != "milliseconds":
        raise InputError(f"{file}: HEADER: TIME_UNITS {quoted(unit)}; 'milliseconds' are read")
    video_id, offset = _media(file, header)
    record = reading.record_of(file, "HEADER", video_id)
    if record is None:
        return reading
    slots = root.iter("TIME_SLOT")
    times = {slot.get("TIME_SLOT_ID", ""): to_number(slot.get("TIME_VALUE")) for slot in slots}
    for tier in root.iter("TIER"):
        name = tier.get("TIER_ID", "")
        _divide(tier, times)
        for found in tier.iter("ALIGNABLE_ANNOTATION"):
            row = f"tier {name}, annotation {found.get('ANNOTATION_ID', '')}"
            milliseconds = [times.get(slot) for slot in _slots(found)]
            if None in milliseconds:
                what = "a time slot without a value in milliseconds; align it in ELAN"
                reading.reject(file, row, what, video_id)
                continue
            start, end = ((value or 0.0) / 1000 + offset for value in milliseconds)
            value = (found.findtext("ANNOTATION_VALUE") or "").strip()
            record.add(row, start, end, value or name, subject=tier.get("PARTICIPANT", "").strip())
    return reading


def _divide(tier: Element, times: dict[str, float | None]) -> None:
    """Fill in the slots without a time, of a tier that divides the annotations of another.

    As in ELAN they lie evenly between the nearest two with a time in annotations that touch.
    """
    row: list[str] = []
    for found in tier.iter("ALIGNABLE_ANNOTATION"):
        start, end = _slots(found)
        if not row or start != row[-1]:
            row = [start]
        row.append(end)
        first, last = times.get(row[0]), times.get(end)
        if last is None:
            continue
        if first is not None:
            for place, slot in enumerate(row[1:-1], start=1):
                times[slot] = first + (last - first) * place / (len(row) - 1)
        row = [end]


def _slots(annotation: Element) -> tuple[str, str]:
    return annotation.get("TIME_SLOT_REF1", ""), annotation.get("TIME_SLOT_REF2", "")


def write(records: Sequence[Record]) -> str:
    """Return the document of one video, times rounded to milliseconds.

    Raises:
        InputError: There is not exactly one record.
    """
    if len(records) != 1:
        raise InputError(f"ELAN has a file for each video, and there are {len(records)}")
    (record,) = records
    facts = {"AUTHOR": "", "DATE": _EPOCH, "FORMAT": "3.0", "VERSION": "3.0"}
    schema = {"xmlns:xsi": _XSI, "xsi:noNamespaceSchemaLocation": _SCHEMA}
    root = Element("ANNOTATION_DOCUMENT", facts | schema)
    header = SubElement(root, "HEADER", {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"})
    url = f"./{media_name(record)}"
    kind = _KINDS.get(PurePath(url).suffix.lower(), "video/*")
    media = {"MEDIA_URL": url, "MIME_TYPE": kind, "RELATIVE_MEDIA_URL": url}
    SubElement(header, "MEDIA_DESCRIPTOR", media)
    segments = sorted(
        (max(round(1000 * start), 0), max(round(1000 * end), 0), label, subject)
        for start, end, label, subject, _ in record.bouts()
    )
    last = SubElement(header, "PROPERTY", {"NAME": "lastUsedAnnotationId"})
    last.text = str(len(segments))
    # each annotation has slots of its own: ELAN moves all that share one
    edges = sorted(
        (time, number, edge)
        for number, segment in enumerate(segments)
        for edge, time in enumerate(segment[:2], start=1)
    )
    slots = {}
    order = SubElement(root, "TIME_ORDER")
    for place, (time, number, edge) in enumerate(edges, start=1):
        slots[number, edge] = f"ts{place}"
        slot = {"TIME_SLOT_ID": f"ts{place}", "TIME_VALUE": str(time)}
        SubElement(order, "TIME_SLOT", slot)
    names: set[str] = set()
    tiers_of: dict[str, list[tuple[Element, int]]] = {}  # and the end of its last annotation
    for number, (start, end, label, subject) in enumerate(segments):
        tiers = tiers_of.setdefault(subject, [])
        place = next((at for at, (_, free) in enumerate(tiers) if free <= start), len(tiers))
        if place == len(tiers):
            who = {"PARTICIPANT": subject} if subject else {}
            named = {"LINGUISTIC_TYPE_REF": _TYPE, **who, "TIER_ID": _name(subject, place, names)}
            tiers.append((SubElement(root, "TIER", named), 0))
        tier = tiers[place][0]
        tiers[place] = tier, max(end, start)
        refs = {f"TIME_SLOT_REF{edge}": slots[number, edge] for edge in (1, 2)}
        named = {"ANNOTATION_ID": f"a{number + 1}", **refs}
        annotation = SubElement(SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", named)
        SubElement(annotation, "ANNOTATION_VALUE").text = label
    if not tiers_of:
        SubElement(root, "TIER", {"LINGUISTIC_TYPE_REF": _TYPE, "TIER_ID": _TIER})
    plain = {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": _TYPE, "TIME_ALIGNABLE": "true"}
    SubElement(root, "LINGUISTIC_TYPE", plain)
    indent(root, "    ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _name(subject: str, place: int, names: set[str]) -> str:
    """Return a name for a subject's next tier, of those that no tier has, and add it to them."""
    stem = f"{_TIER}@{subject}" if subject else _TIER
    given = (stem if number == 1 else f"{stem} {number}" for number in count(place + 1))
    name = next(name for name in given if name not in names)
    names.add(name)
    return name


def _media(file: str, header: Element | None) -> tuple[str, float]:
    """Return the id of the video, and the time in its file at which the document's times begin."""
    found = [] if header is None else header.findall("MEDIA_DESCRIPTOR")
    if not found:
        return PurePath(file).stem, 0.0
    first = next(filter(_is_video, found), found[0])
    url = first.get("RELATIVE_MEDIA_URL", "") or first.get("MEDIA_URL", "")
    return video_id_of(url), (to_number(first.get("TIME_ORIGIN")) or 0.0) / 1000


def _is_video(media: Element) -> bool:
    url = media.get("MEDIA_URL", "") or media.get("RELATIVE_MEDIA_URL", "")
    kind = media.get("MIME_TYPE", "")
    return kind.startswith("video/") or PurePath(url).suffix.lower() in VIDEO_SUFFIXES
