"""A page in the browser on which curves follow sliders; it calls the public functions.

`controls` says what can be chosen, `parse` makes a `view` of it, `compute` calls the library,
`plots`, `sentence` and `exports` show the result, and `data_panel` that of an `upload`. `stream`
sends what takes long while it is computed, in the processes of `worker_pool`. `layout` and
`callbacks` are the page itself, with the views of `presets`; `server` serves it, and `guard` says
to whom. The server keeps no state: the address of a view is the view.
"""

import hiddenmanifold as hm

try:
    import dash  # noqa: F401
except ImportError:
    raise hm.MissingExtraError("explore", "dash", "explore") from None

from hiddenmanifold.explorer.guard import LOOPBACK
from hiddenmanifold.explorer.server import serve, served

__all__ = ["LOOPBACK", "serve", "served"]
