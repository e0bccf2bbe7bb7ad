"""The two ways in which a run ends with words instead of figures."""


class InputError(Exception):
    """What the user gave cannot be used; the message names the thing and the remedy (exit code 2)."""


class WrongOutputError(Exception):
    """A strategy did not deliver what its question asks for; the message says what differs."""
