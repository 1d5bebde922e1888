"""Results on disk, each under a hash of what determines it.

`store` is a file of rows that several processes may write to; `fingerprint` is the hash of a
model, its functions included, and of the sources that computed a row.
"""

from hiddenmanifold.storage.fingerprint import SHOWING, fingerprint, sources_digest
from hiddenmanifold.storage.store import Row, Store, StoreError

__all__ = ["SHOWING", "Row", "Store", "StoreError", "fingerprint", "sources_digest"]
