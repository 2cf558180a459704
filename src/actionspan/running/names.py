"""Names of files for any text; standard library only."""

import hashlib
import re


def file_name(text: str) -> str:
    """Return a short name that is safe in shells and file systems, and different for each text."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", text):
        return text
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:80].lstrip(".-")
    return f"{safe}~{hash_of(text).hex()[:12]}"


def hash_of(text: str) -> bytes:
    """Return the SHA-256 of a text, such as a file's name, that may hold undecodable bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
