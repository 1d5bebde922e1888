"""Results on disk, each under a hash of what determines it."""

from hiddenmanifold.storage.fingerprint import SHOWING, fingerprint, sources_digest
from hiddenmanifold.storage.store import Row, Store, StoreError

__all__ = ["SHOWING", "Row", "Store", "StoreError", "fingerprint", "sources_digest"]
