"""A dispatcher or a worker of tf.data service in a process of its own: ``python node.py``, or a fork of another one.

It imports TensorFlow, then reads its settings from a line on standard input, so that a worker can import while the
dispatcher does, whose port is not known yet. It prints its port and its version of TensorFlow on a line once it is up,
and ends when its standard input does. What keeps it from coming up goes to standard error, with exit code 1. It can be
run as a script, and then imports TensorFlow and nothing else.
"""

from __future__ import annotations

import json
import os
from typing import Any, NoReturn


def main() -> NoReturn:
    """Serve until standard input ends."""
    try:
        import tensorflow as tf

        given = open(0, closefd=False)  # noqa: SIM115 - a fork has another one than its ``sys.stdin`` began with
        line = given.readline()
        if not line:  # nobody needs it any more
            os._exit(0)
        settings: dict[str, Any] = json.loads(line)
        server, port = serve(settings.pop("role"), settings)
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever started this must read it
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os.write(1, f"{port} {tf.__version__}\n".encode())
    given.read()
    del server
    os._exit(0)


def serve(role: str, settings: dict[str, Any]) -> tuple[Any, int]:
    """Start a server; returns it with its port."""
    from tensorflow.data.experimental import service

    if role == "dispatcher":
        dispatcher = service.DispatchServer(service.DispatcherConfig(**settings))
        return dispatcher, int(dispatcher.target.rpartition(":")[2])
    server = service.WorkerServer(service.WorkerConfig(**settings))
    return server, int(server._address.rpartition(":")[2])


if __name__ == "__main__":
    main()
