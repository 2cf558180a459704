"""Mutated annotation files of every form: one line, or tables in which everything holds.

Rewriting a file in a way that changes nothing it says (a byte order mark, other line ends, UTF-16,
another order of columns) must give the same tables to the bit.
"""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from actionspan.annotations.formats.records import RawInstance, Record, id_problem, text_problem
from actionspan.annotations.formats.registry import (
    FORMAT_NAMES,
    WRITABLE,
    read_annotation_file,
    sniffed,
)
from actionspan.annotations.tables import read_annotations, read_videos
from actionspan.storage.writing import read_tsv
from campaigns.cases import Result, fault, wrong
from campaigns.children import Ended, call, command
from campaigns.damage import damaged

_SAMPLES = Path(__file__).parents[2] / "tests/annotations/samples"
_LONGEST_ID = 251  # bytes: {id}.vtt is a file
_LONGEST_LABEL = 1000
_MARKS = "{}[]\",:;\t\n\r\0\\/'=|.-_ "
_WORDS = (
    "null", "NaN", "Infinity", "1e999", "-1", "true", '"subset"', '"database":', '"annotations"',
    "é", "9" * 400, "\\ud800", "\ufeff", "\u2028", "\u202e", "\x1b[2J", "[" * 3000,
    '{"a":' * 3000, "..", "1e-320", "0x1", "1_0", "..", "x" * 300, "x" * 100_000, "\udcff",
    "Ambiguous", "video_test_0000001",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1e-320, 1e308, float("nan"), float("inf"), 10**400, "", " ", "..", ".",
    "a/b", "-x", "=1+1", "@x", "\0", "\n", "\x1b[2J", "\u202e", "\ud800", "x" * 244, "x" * 300,
    "x" * 100_000, "1_000", "é", "e\u0301", "nan", "1e400", "training", "TEST", [], {}, [[]],
    [1], [1, 2, 3], {"a": 1}, [None, None], ["1", "2"], "demo_000.mp4", "v_a",
    {"segment": [2, 1], "label": "x"}, 10**12, 0.1 + 0.2, "Ambiguous",
)  # fmt: skip


class Annotations:
    """A sound file of a random form is changed in one to four places."""

    name = "annotations"
    count = 5000

    def prepare(self, folder: Path) -> None:
        """Import what the commands import late."""
        import actionspan.dataset.convert
        import actionspan.dataset.index  # noqa: F401

    def case(self, random: Random, folder: Path) -> Result:
        """Index a mutated file, or convert it."""
        form = random.choice(list(WRITABLE))
        videos = 1 if form == "elan" else random.randint(1, 5)
        text = WRITABLE[form].write([_record(random, place) for place in range(videos)])
        sample = random.random() < 0.2  # what we only read
        if sample:
            text = random.choice(sorted(_SAMPLES.iterdir())).read_text(encoding="utf-8")
            form = sniffed(text)
        suffix = ".json" if _is_json(text) else ".csv"
        path = folder / f"annotations{suffix}"
        if not sample and random.random() < 0.15:
            return _same_tables(text, form, path, random)
        content = _mutated(text, random)
        given = random.choice(["auto", "auto", form, random.choice(FORMAT_NAMES)])
        path.write_bytes(content)
        if random.random() < 0.1 and suffix == ".csv":
            return _of_folder(path, folder)
        if random.random() < 0.25:
            return _converted(path, given, random)
        words = ["--format", given, "--on-bad-input", random.choice(["skip", "skip", "fail"])]
        if random.random() < 0.2:
            (folder / "info.csv").write_bytes(_mutated(_info(random), random))
            words += ["--video-info", "info.csv"]
        return _indexed(path, folder, *words)


def _record(random: Random, place: int) -> Record:
    """Return a sound record."""
    seconds = round(random.uniform(5, 100), 3)
    instances = []
    for _ in range(random.randint(0, 4)):
        start = round(random.uniform(0, seconds - 1), 3)
        end = round(random.uniform(start + 0.1, seconds), 3)
        label = random.choice(["run", "sit down", "CliffDiving", "Ambiguous", "déjà, vu", 'a "b"'])
        instances.append(RawInstance(start=start, end=end, label=label))
    return Record(
        video_id=f"{random.choice(['v_', 'clip ', 'video_test_000000', 'é'])}{place}",
        subset=random.choice(["training", "validation"]),
        seconds=seconds,
        frames=random.choice([0, int(seconds * 25)]),
        fps=random.choice([0.0, 25.0]),
        instances=instances,
    )


def _info(random: Random) -> str:
    rows = [
        f"v_{place},training,{random.randint(5, 99)},{random.randint(99, 999)}"
        for place in range(4)
    ]
    return "\n".join(["video,subset,seconds,numFrame", *rows, ""])


def _mutated(text: str, random: Random) -> bytes:
    """Change values where the file has them, or bytes anywhere."""
    if random.random() < 0.5:
        text = (_json_changed if _is_json(text) else _cells_changed)(text, random)
        if random.random() < 0.6:
            return text.encode("utf-8", "surrogatepass" if random.random() < 0.5 else "replace")
    content = text.encode("utf-8", "surrogatepass")
    for _ in range(random.randint(1, 4)):
        if random.random() < 0.3:
            content, _ = damaged(content, random)
            continue
        place = random.randrange(len(content) + 1)
        piece = random.choice([random.choice(_MARKS), random.choice(_WORDS)])
        end = place + random.choice([0, 0, 1, len(piece)])
        content = content[:place] + piece.encode("utf-8", "surrogatepass") + content[end:]
    return content


def _json_changed(text: str, random: Random) -> str:
    """Replace, add or remove nodes of the tree."""
    tree = json.loads(text)
    for _ in range(random.randint(1, 3)):
        holders = list(_holders(tree))
        holder = random.choice(holders)
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            continue
        key, value = random.choice(keys), random.choice(_VALUES)
        what = random.random()
        if what < 0.6:
            holder[key] = value
        elif what < 0.8 and isinstance(holder, dict):
            holder[str(random.choice(_VALUES))] = holder.pop(key)
        elif isinstance(holder, list):
            holder.append(value)
        else:
            del holder[key]
    return json.dumps(tree, ensure_ascii=random.random() < 0.5)


def _holders(node: Any) -> "list[Any]":
    if isinstance(node, dict | list):
        inner = node.values() if isinstance(node, dict) else node
        return [node, *(holder for value in inner for holder in _holders(value))]
    return []


def _cells_changed(text: str, random: Random) -> str:
    rows = list(csv.reader(io.StringIO(text)))
    for _ in range(random.randint(1, 3)):
        row = random.choice(rows)
        value = random.choice(_VALUES)
        if not row or random.random() < 0.1:
            row.append(str(value))
        elif random.random() < 0.1:
            row.pop(random.randrange(len(row)))
        else:
            row[random.randrange(len(row))] = str(value)
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()


def _index(path: Path, out: str, *words: str) -> Ended:
    line = ["dataset", "index", "--annotations", path.name, "--name", "x", "--out", out, *words]
    return call(command(line), path.parent)


def _indexed(path: Path, folder: Path, *words: str) -> Result:
    ended = _index(path, "out", *words)
    found = fault(ended) or (_unsound(folder / "out") if ended.status == 0 else None)
    if found:
        return found
    return Result("refused in a line" if ended.status else "read")


def _of_folder(path: Path, folder: Path) -> Result:
    """Index a folder of text files, as THUMOS14 has them."""
    (folder / "texts").mkdir()
    path.rename(folder / "texts/Diving_val.txt")
    return _indexed(folder / "texts", folder)


def _converted(path: Path, form: str, random: Random) -> Result:
    target = random.choice(list(WRITABLE))
    words = ["dataset", "convert", path.name, "out", "--from", form, "--to", target]
    ended = call(command(words), path.parent)
    if found := fault(ended):
        return found
    if ended.status:
        return Result("refused in a line")
    if target == "elan" and not list((path.parent / "out").iterdir()):
        return Result("converted")  # no video
    try:
        read_annotation_file(path.parent / "out", target)
    except Exception as error:
        return wrong("what was converted cannot be read", str(error))
    return Result("converted")


def _unsound(out: Path) -> Result | None:
    """Return what does not hold in the tables that were written."""
    try:
        videos, annotations = (
            read_videos(out / "videos.tsv"),
            read_annotations(out / "annotations.json"),
        )
        read_tsv(out / "rejected.tsv")
    except Exception as error:
        return wrong("tables that cannot be read", f"{type(error).__name__}: {error}")
    for video in videos:
        if id_problem(video.video_id) or video.video_id == "..":
            return wrong("an id that names no file", video.video_id)
        if len(video.video_id.encode()) > _LONGEST_ID:
            return wrong("an id that is too long for a file", video.video_id)
        if not (math.isfinite(video.fps) and 0 < video.duration_seconds < math.inf):
            return wrong("a rate or duration that is not finite", f"{video}")
    for annotation in annotations:
        for one in annotation.instances:
            if not 0 <= one.start < one.end <= annotation.duration_seconds + 1e-6:
                return wrong("an instance outside its video", f"{annotation}")
            if text_problem(one.label) or not one.label:
                return wrong("a label that is no text", one.label)
            if len(one.label) > _LONGEST_LABEL:
                return wrong("a label without end", one.label)
    return None


def _same_tables(text: str, form: str, path: Path, random: Random) -> Result:
    """Index a file and the same said otherwise."""
    path.write_text(text, encoding="utf-8")
    first = _index(path, "first", "--format", form)
    table = _XML_WAYS if text.startswith("<") else _TABLE_WAYS
    way = random.choice(_JSON_WAYS if _is_json(text) else table)
    path.write_bytes(way(text, random))
    second = _index(path, "second", "--format", form)
    found = fault(first) or fault(second)
    if found:
        return found
    if first.status != second.status:
        return wrong(
            "a harmless change is refused", f"{way.__name__}: {first.errors}{second.errors}"
        )
    for name in ("videos.tsv", "annotations.json"):
        files = [path.parent / out / name for out in ("first", "second")]
        if first.status == 0 and files[0].read_bytes() != files[1].read_bytes():
            return wrong("a harmless change is read otherwise", f"{way.__name__}: {name}")
    return Result("same tables")


def _is_json(text: str) -> bool:
    return text.startswith(("{", "["))


def _mark(text: str, _: Random) -> bytes:
    return text.encode("utf-8-sig")


def _utf16(text: str, _: Random) -> bytes:
    return text.encode("utf-16")


def _line_ends(text: str, _: Random) -> bytes:
    return text.replace("\n", "\r\n").encode()


def _blank_lines(text: str, _: Random) -> bytes:
    return text.replace("\n", "\n\n  \n").encode()


def _keys(text: str, random: Random) -> bytes:
    """Write the keys of objects, other than videos, in another order, and with other spaces."""

    def shuffled(node: Any, depth: int = 0) -> Any:
        if isinstance(node, list):
            return [shuffled(value, depth + 1) for value in node]
        if not isinstance(node, dict):
            return node
        items = [(key, shuffled(value, depth + 1)) for key, value in node.items()]
        if depth > 1:
            random.shuffle(items)
        return dict(items)

    return json.dumps(shuffled(json.loads(text)), indent=random.choice([None, 4, "\t"])).encode()


def _columns(text: str, random: Random) -> bytes:
    """Write the columns in another order, between other separators."""
    rows = list(csv.reader(io.StringIO(text)))
    order = random.sample(range(len(rows[0])), len(rows[0]))
    written = io.StringIO()
    table = csv.writer(written, delimiter=random.choice(",;\t"), lineterminator="\n")
    table.writerows([[row[place] for place in order] for row in rows])
    return written.getvalue().encode()


_JSON_WAYS: tuple[Callable[[str, Random], bytes], ...] = (_mark, _utf16, _line_ends, _keys)
_XML_WAYS: tuple[Callable[[str, Random], bytes], ...] = (_mark, _utf16, _line_ends)
_TABLE_WAYS: tuple[Callable[[str, Random], bytes], ...] = (
    _mark,
    _utf16,
    _line_ends,
    _blank_lines,
    _columns,
)
CAMPAIGN = Annotations()
