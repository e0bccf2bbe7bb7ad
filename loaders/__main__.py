"""``python -m loaders``: see ``loaders._cli``."""

from __future__ import annotations

from loaders._cli import main

if __name__ == "__main__":
    main(prog_name="python -m loaders")
