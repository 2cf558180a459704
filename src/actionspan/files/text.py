"""Text files in UTF-8; standard library only, as the Snakefile reads such files too."""

from pathlib import Path

from actionspan.errors import InputError


def read_utf8(path: Path) -> str:
    """Return the text of a UTF-8 file, without its byte order mark, lines ended by newlines.

    Raises:
        InputError: The file is missing, cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
