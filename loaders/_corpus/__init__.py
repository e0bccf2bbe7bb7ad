"""The bytes on disk: photographs and the records made from them, built once and reused by every trial.

``open_corpus`` returns a ``Corpus``; it is the only entry point. Each corpus has its own cache directory, named by a
digest of everything that decides its bytes. It is put there in one rename, and verified against its manifest's digests
before it is used again. Nothing is ever written into the user's folder.

Modules import only what is before them: ``_manifest``, ``_records``, ``_sources``, ``_stills``, ``_encodings``,
``_corpus``, ``_store``; ``_damage`` reads the manifest's values alone.
"""

from loaders._corpus._corpus import NO_CORPUS, Corpus
from loaders._corpus._damage import damage
from loaders._corpus._manifest import OWN, SIZES, Image, Shard, Size
from loaders._corpus._sources import is_turned
from loaders._corpus._store import cache_root, load_corpus, open_corpus

__all__ = [
    "NO_CORPUS",
    "OWN",
    "SIZES",
    "Corpus",
    "Image",
    "Shard",
    "Size",
    "cache_root",
    "damage",
    "is_turned",
    "load_corpus",
    "open_corpus",
]
