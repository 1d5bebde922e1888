"""Results on disk, each under a hash of what determines it."""

from hiddenmanifold.storage.fingerprint import fingerprint, sources_digest
from hiddenmanifold.storage.store import Row, Store, StoreError

__all__ = ["Row", "Store", "StoreError", "fingerprint", "sources_digest"]
