"""The two ways in which a run ends with words instead of figures, and what such words may hold."""


class InputError(Exception):
    """What the user gave cannot be used; the message names the thing and the remedy (exit code 2)."""


class WrongOutputError(Exception):
    """A strategy did not deliver what its question asks for; the message says what differs."""


def printable(text: str) -> str:
    """Return a text on one line, whatever a foreign name holds: what does not print stands as its escape.

    That is line breaks, the escapes that a terminal obeys, marks that turn the direction of writing, and the surrogates
    that stand for bytes of a file's name that are no UTF-8, which no file or page can hold.
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
