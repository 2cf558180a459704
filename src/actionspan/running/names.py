"""Names of files for any text; standard library only."""

import hashlib
import re

_VARIABLE = re.compile(r"<[a-z][a-z0-9_]*>")


def file_name(text: str) -> str:
    """Return a short name that is safe in shells and file systems, and different for each text."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", text):
        return text
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:80].lstrip(".-")
    return f"{safe}~{hash_of(text).hex()[:12]}"


def filled_in(path: str, *, by_function: bool = False) -> str:
    """Say what Snakemake would fill in in a path, which cannot be escaped, or return an empty text.

    Args:
        path: A path that a rule has.
        by_function: Whether a function gives it, where braces are no wildcards.
    """
    if not by_function and ("{" in path or "}" in path):
        return "Snakemake takes what is in braces for a wildcard"
    variable = _VARIABLE.search(path)
    return f"Snakemake takes {variable[0]} for a path variable" if variable else ""


def hash_of(text: str) -> bytes:
    """Return the SHA-256 of a text, such as a file's name, that may hold undecodable bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
