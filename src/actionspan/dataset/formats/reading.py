"""Annotation files of every known form to records: encoding, choice of the form, reading."""

from pathlib import Path
from typing import Literal

from actionspan.dataset.formats.activitynet import read_json_records
from actionspan.dataset.formats.records import Reading
from actionspan.dataset.formats.tables import read_table_records, read_thumos_folder
from actionspan.errors import InputError

AnnotationFormat = Literal["auto", "activitynet", "anet_anno_action", "thumos14", "table"]


def read_annotation_file(
    path: Path, form: AnnotationFormat = "auto", keep_ambiguous: bool = True
) -> Reading:
    """Read one annotation file (for THUMOS14 also a folder of `<Class>_val.txt` files).

    Args:
        path: The file.
        form: Its form; `auto` tells it from the content.
        keep_ambiguous: Whether THUMOS14's class "Ambiguous" counts as instances.

    Raises:
        InputError: The whole file is unusable: missing, empty, not text, not JSON, no known form.
    """
    if path.is_dir():
        if form not in ("auto", "thumos14"):
            raise InputError(f"{path}: a folder, not a file of form {form}")
        files = {file: read_text(file) for file in sorted(path.glob("*.txt"))}
        if not files:
            raise InputError(f"{path}: no .txt files of THUMOS14 in this folder")
        return read_thumos_folder(files, keep_ambiguous)
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    looks_json = text.lstrip()[0] in "{["
    if form in ("activitynet", "anet_anno_action") or (form == "auto" and looks_json):
        return read_json_records(str(path), text, form)
    return read_table_records(str(path), text, form, keep_ambiguous)


def read_text(path: Path) -> str:
    """Read text as UTF-8, or UTF-16 where a byte order mark says so.

    Bytes that are not UTF-8 become lone surrogates, so that only the rows which hold them are lost.

    Raises:
        InputError: The file is missing, or is binary.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: broken UTF-16 (byte {error.start}); use UTF-8") from None
    if b"\0" in content:
        raise InputError(f"{path}: not text, or UTF-16 without a byte order mark; save it as UTF-8")
    return content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
