"""The two errors that end a run with a message instead of figures, and the characters allowed in messages."""


class InputError(Exception):
    """The user's input cannot be used; the message names the fault and the remedy (exit code 2)."""


class WrongOutputError(Exception):
    """A strategy did not deliver what its question asks for; the message says what differs."""


def printable(text: str) -> str:
    """Return a text on one line, whatever a foreign name contains: characters that do not print are escaped.

    These are line breaks, terminal escapes, marks that change the writing direction, and the surrogates that stand for
    bytes of a file name that are not UTF-8, which no file or page can hold.
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


CHANGED = (
    "the code, what is installed or the number of cores has changed since this began; what was measured is kept, and "
    "the same command measures what is there now"
)
"""What is said where more trials would be of other code than is recorded."""
