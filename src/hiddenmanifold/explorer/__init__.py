"""Interactive explorer: a web page on which curves follow sliders, by the public functions.

A view is all that a user has chosen. In the order in which it becomes a picture:

- `controls`: what can be chosen, `explanations`: what it means; `presets`: views ready to open;
- `parse`: from the texts of the controls to a `view`, which an address can hold; `adapt`: what
  changes along with a choice;
- `compute`: calls the library; `worker_pool`: processes for what takes long; `stream`: sends such
  results while they are computed;
- `plots`, `several_lines`, `sentence`, `sentence_of_several`, `exports`: show the result, describe
  it, and reproduce it elsewhere;
- `upload`, `data_panel`: learning curves of a table that the user uploads; `study_panel`: a study
  that is planned without one (`elements`: words and tables of both);
- `layout`, `fields_layout`, `callbacks`: the page itself, and what happens on it; in the browser
  `assets/controls.js` makes native controls, and `assets/explorer.js` draws;
- `server` serves the page, and `guard` decides to whom.

The server keeps no state: the address of a view holds everything that the view shows.
"""

import hiddenmanifold as hm

try:
    import dash  # noqa: F401
except ImportError:
    raise hm.MissingExtraError("explore", "dash", "explore") from None

from hiddenmanifold.explorer.guard import LOOPBACK
from hiddenmanifold.explorer.server import serve, served

__all__ = ["LOOPBACK", "serve", "served"]
