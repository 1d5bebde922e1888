"""A page in the browser on which curves follow sliders; it calls the public functions.

`fields` says what can be chosen, `reading` makes a `view` of it, `computing` calls the library,
`drawing`, `sentence` and `exports` show the result, `stream` sends what takes long while it is
computed, in the processes of `background`, `page` and `callbacks` are the page itself, `server`
serves it, and `guard` says to whom. The server keeps no state: the address of a view is the view.
"""

import hiddenmanifold as hm

try:
    import dash  # noqa: F401
except ImportError:
    raise hm.MissingExtraError("explore", "dash", "explore") from None

from hiddenmanifold.explorer.guard import LOOPBACK
from hiddenmanifold.explorer.server import serve, served

__all__ = ["LOOPBACK", "serve", "served"]
