"""The exception for a user's mistake, and text that is safe on one line."""


class InputError(Exception):
    """Bad input: the message is one line that names the file, key or row and what would be right.

    The command line prints it without a traceback and exits with status 2.
    """


class JobError(InputError):
    """An error that no single video is to blame for, such as a full disk or a damaged result."""


def printable(text: str) -> str:
    """Return `text` on one line: control characters and bytes that were not UTF-8 are escaped."""

    def escaped(character: str) -> str:
        if "\udc80" <= character <= "\udcff":  # a byte, as `surrogateescape` decodes it
            return f"\\x{ord(character) - 0xDC00:02x}"
        return character if character.isprintable() else ascii(character)[1:-1]

    return "".join(escaped(character) for character in text)
