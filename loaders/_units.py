"""The range of valid figures and names. Other values are reported when a record is read; see ``loaders._trial.log``.

msgspec checks a value against these when it reads JSON, not when a program creates one. NaN and infinity are not JSON.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Seconds = Annotated[float, Meta(ge=0, le=10**9)]
"""At most 30 years."""

Quantity = Annotated[float, Meta(ge=0, le=10**15)]
"""Samples per second, the load, a mean length."""

Bytes = Annotated[int, Meta(ge=-(2**60), le=2**60)]
"""Above or below a baseline; at most 1 EiB, which no machine has."""

Size = Annotated[int, Meta(ge=0, le=2**60)]
"""Bytes, never negative."""

Amount = Annotated[float, Meta(ge=-(2**60), le=2**60)]
"""Computed numbers of bytes."""

Count = Annotated[int, Meta(ge=0, le=10**12)]

Share = Annotated[float, Meta(ge=0, le=1)]

Level = Annotated[float, Meta(ge=-1000, le=1000)]
"""In dB or grey levels."""

Word = Annotated[str, Meta(pattern="^[A-Za-z0-9 -]{1,40}$")]
"""A name that the suite gives."""

Name = Annotated[str, Meta(max_length=500)]
"""Text of a heading or a cell. A file name has at most 255 bytes."""
