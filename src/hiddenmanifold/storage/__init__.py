"""Results on disk that outlive the version that wrote them.

A store is one SQLite file of rows. `store` reads and writes it: rows are committed whole, several
processes may share a file, and a digest in each row reveals damage. `identity` is the text by which
a model is known in a row.

A row holds the numbers of one fit, under a key that is a hash of what determines them: the model,
the sizes n, p and d, λ, the seeds, what is measured, and the version of the algorithm
(`ALGORITHM_VERSION` in `simulation.trial_cache`). That version is raised by hand when results
change, so that comments, new features and faster code leave stored fits valid; a test compares
stored numbers with today's and fails if the version should have been raised. The row also has all
of this in plain text, from which every later version can list it, export it, and make its key.
"""

from hiddenmanifold.storage.identity import identity
from hiddenmanifold.storage.store import Row, Store, StoreError

__all__ = ["Row", "Store", "StoreError", "identity"]
