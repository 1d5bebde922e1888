"""Stream slow results line by line as they are computed: sentences, lines, simulated points.

The connection is the only state: closing it ends the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

import hiddenmanifold as hm
from hiddenmanifold.explorer import plots, upload
from hiddenmanifold.explorer.compute import HERE
from hiddenmanifold.explorer.controls import OVERLAPS, QUANTITIES, short
from hiddenmanifold.explorer.data_panel import learned
from hiddenmanifold.explorer.parse import views_of
from hiddenmanifold.explorer.sentence import sentence
from hiddenmanifold.explorer.view import View, converted
from hiddenmanifold.explorer.worker_pool import DEADLINE, elsewhere
from hiddenmanifold.parallel.processes import DeadlineError

AT_ONCE = 2
"""Simulations that run beside each other."""
LARGEST = 3000
"""Most samples, and most features, of one fit."""
MEASURED = (*(name for name in QUANTITIES if name != "overlaps"), *OVERLAPS, "Q", "M")

R = TypeVar("R")
running: set[object] = set()
"""Simulations under way."""


def describe(query: str) -> Iterator[str]:
    """The lines beside the curves of a view, and what is seen in it."""
    view, pins = views_of(query)
    if view is None:
        return
    try:
        lines = yield from _awaited(plots.references, view, pins)
        yield _line(address=query, **lines)
        said = yield from _awaited(sentence, view)
        yield _line(sentence=said)
    except hm.HiddenManifoldError as error:
        yield _line(sentence=f"{error}.")


def learn(
    name: str,
    content: bytes,
    label: str,
    task: str,
    gain: str,
    *,
    positive: str = "",
    loss: str = "",
    page: str = "",
) -> Iterator[str]:
    """The learning curve of an uploaded file, or why there is none."""
    try:
        lower = float(gain)
        if not 0.0 < lower < 100.0:
            raise ValueError
    except ValueError:
        yield _line(error="The error can be lower by more than 0 and less than 100 %.")
        return
    try:
        # removed here: the process that reads the file may be ended
        with TemporaryDirectory() as folder:
            path = Path(folder, "upload")
            path.write_bytes(content)
            del content  # few are held in memory at a time
            asked = name, path, label, task, lower / 100.0
            work = partial(learned, positive=positive)
            found = yield from _with_a_loss(work, asked, loss, page)
        yield _line(learning=found)
    except hm.HiddenManifoldError as error:
        yield _line(error=f"{error}.")


def _with_a_loss(
    work: Callable[..., dict[str, Any]], asked: tuple[Any, ...], loss: str, page: str
) -> Generator[str, None, dict[str, Any]]:
    """A report with the loss that was chosen, or that of the page unless it takes too long."""
    try:
        own = partial(work, loss=loss, page=page)
        return (yield from _awaited(own, *asked, seconds=upload.LONGEST))
    except DeadlineError:
        if loss:
            raise
    yield _line(slow=upload.QUICKER)
    square = partial(work, loss="square")
    found = yield from _awaited(square, *asked, seconds=upload.LONGEST)
    return {**found, "loss": upload.QUICKER}


def simulate(query: str) -> Iterator[str]:
    """A line of JSON per event: a point begun, a point done, or why there is none."""
    view, _ = views_of(query)
    if view is None or not view.simulable:
        yield _line(error="only curves can be simulated, and only if every field makes sense")
        return
    own = object()
    running.add(own)
    try:
        if len(running) > AT_ONCE:
            yield _line(error=f"{AT_ONCE} simulations are under way: cancel one, or wait")
        else:
            yield from _points(view)
    finally:
        running.remove(own)


def _points(view: View) -> Iterator[str]:
    places = view.dots_axis.values.tolist()
    yield _line(setting=view.setting, of=len(places))
    for done, x in enumerate(places):
        yield _line(next=x, done=done)
        try:
            found = yield from _awaited(_measured, view, x)
            yield _line(x=x, done=done + 1, **found)
        except hm.HiddenManifoldError as error:
            yield _line(x=x, done=done + 1, reason=str(error))
    yield _line(end=True)


def _measured(view: View, x: float) -> dict[str, Any]:
    """Means and standard errors of all quantities at a point."""
    given = dict(view.arguments(**{view.x.name: x}))
    ratios = {name: value for name, value in given.items() if name != "regularisation"}
    if view.model.features.infinite:
        ratios["p_over_n"] = 1.0  # as many coefficients as samples
    for name in ("n_over_d", "p_over_d"):
        if (size := view.d * converted(ratios, name)) > LARGEST:
            letter = name[0]
            return {
                "reason": f"{letter} = {size:.0f} at {short(view.x.name)} = {x:.3g} is beyond the "
                f"budget of {LARGEST}: choose a smaller d or a shorter axis"
            }
    ds = hm.compare(view.model, **given, d=view.d, seeds=view.seeds, **HERE)
    names = [name for name in MEASURED if name in ds]
    values = {n: float(ds[n]) for m in names for n in (m, f"{m}_stderr") if n in ds}
    return {"values": {n: value for n, value in values.items() if np.isfinite(value)}}


def _awaited(
    work: Callable[..., R], *given: Any, seconds: float = DEADLINE
) -> Generator[str, None, R]:
    """The result of some work elsewhere; empty lines until then, so that a lost client is found."""
    with closing(elsewhere(work, *given, seconds=seconds)) as found:
        for result in found:
            if result is not None:
                return result
            yield "\n"
    raise hm.LostWorkerError("no result")


def _line(**event: Any) -> str:
    return json.dumps(event) + "\n"
