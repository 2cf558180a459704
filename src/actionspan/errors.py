"""The exceptions for a user's mistake, the text of messages, and what says "no memory"."""

import errno

# what torch, OpenCV and C++ say in errors of their own
_NO_MEMORY = (
    *("not enough memory", "can't allocate memory", "out of memory", "Insufficient memory"),
    *("Cannot allocate memory", "bad_alloc", "ailed to allocate"),
)


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


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as `1 video`, `2 videos`, `1,000 classes`."""
    if number != 1:
        noun += "es" * noun.endswith("s") or "s"
    return f"{number:,} {noun}"


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error says that there is too little memory, whatever its type."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, MemoryError):
        return True
    # not text that may be of a file
    said = type(error).__module__.split(".")[0] in ("builtins", "torch", "cv2")
    return said and any(text in str(error) for text in _NO_MEMORY)
