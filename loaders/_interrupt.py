"""Ctrl-C and SIGTERM: both end a command as ``KeyboardInterrupt`` does, and neither is lost.

An exception that a signal raises comes up in whatever code runs at that moment, and that may swallow it: a
comparison that was interrupted while it started once went on to its end.
"""

from __future__ import annotations

import signal

_came = False


def install() -> None:
    """Let both signals interrupt this process, and forget that any has come."""
    global _came  # noqa: PLW0603 - signals are the process's
    _came = False
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)  # a shell's background job is started with it ignored
    if hasattr(signal, "SIGCHLD"):  # what a daemon starts may have it ignored, and nobody would learn how a trial ended
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def raise_if_any() -> None:
    """Raise again what may have been swallowed.

    Raises
    ------
    KeyboardInterrupt
        If a signal has come.
    """
    if _came:
        raise KeyboardInterrupt


def _interrupt(signal_number: int, frame: object) -> None:  # noqa: ARG001
    """End as Ctrl-C does, so that the trial's processes are ended too."""
    global _came  # noqa: PLW0603 - as above
    _came = True
    raise KeyboardInterrupt
