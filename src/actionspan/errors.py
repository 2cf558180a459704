"""The one exception that stands for a user's mistake."""


class InputError(Exception):
    """Bad input: the message is one line that names the file, key or row and what would be right.

    The command line prints it without a traceback and exits with status 2.
    """
