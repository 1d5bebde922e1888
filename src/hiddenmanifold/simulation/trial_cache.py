"""What a store knows of some trials: a row for each regularisation of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.simulation.experiment import Trial
from hiddenmanifold.storage import SHOWING, Row, Store, fingerprint, sources_digest

PACKAGE = Path(__file__).parents[1]
NOT_COMPUTING = (*SHOWING, "figures/", "theory/")
"""Sources that no fit depends on."""


@dataclass(frozen=True)
class Memory:
    """Trials, the keys of their rows, and the numbers that are known.

    Attributes
    ----------
    keys : list of tuple of str
        Of each trial, one per regularisation.
    known : dict
        Numbers by key.
    """

    trials: Sequence[Trial]
    keys: list[tuple[str, ...]]
    known: dict[str, Mapping[str, Any]]

    @classmethod
    def of(cls, trials: Sequence[Trial], store: Store | None) -> Memory:
        """What the store knows of trials, which share a model; nothing, if there is none."""
        if store is None:
            numbers = range(len(trials))
            return cls(trials, [tuple(f"{i}/{lam}" for lam in trials[i].lams) for i in numbers], {})
        model = fingerprint(trials[0].model)
        keys = [tuple(_key({"model": model, **content}) for content in contents(t)) for t in trials]
        rows = store.found(key for some in keys for key in some)
        return cls(trials, keys, {key: row.numbers for key, row in rows.items()})

    @property
    def missing(self) -> list[tuple[tuple[str, ...], Trial]]:
        """What is left to do, with its keys: no fit twice, though points may share their sizes."""
        left, planned = [], set(self.known)
        for trial, keys in zip(self.trials, self.keys, strict=True):
            given = zip(keys, trial.lams, strict=True)
            lams = {key: lam for key, lam in given if key not in planned}
            planned.update(lams)
            if lams:
                left.append((tuple(lams), replace(trial, lams=tuple(lams.values()))))
        return left

    @property
    def complete(self) -> int:
        """Trials of which everything is known."""
        return sum(all(key in self.known for key in keys) for keys in self.keys)

    def learn(
        self, keys: Sequence[str], trial: Trial, result: Mapping[str, Array]
    ) -> Iterator[Row]:
        """Take in what was left of a trial; its rows are those to be written."""
        for i, (key, content) in enumerate(zip(keys, contents(trial), strict=True)):
            self.known[key] = {name: values[i].tolist() for name, values in result.items()}
            described = {"model": repr(trial.model), **content}
            yield Row(key, "fit", described, self.known[key], computing_sources())

    @property
    def columns(self) -> dict[str, Array]:
        """Every quantity, of shape (trials, regularisations, ...); NaN where it is not known."""

        def column(name: str, shape: tuple[int, ...]) -> Array:
            missing = np.full(shape, np.nan).tolist()
            found = (
                self.known.get(key, {}).get(name, missing) for some in self.keys for key in some
            )
            return np.array([*found]).reshape(len(self.keys), -1, *shape)

        return {name: column(name, shape) for name, shape in self.trials[0].shapes.items()}


@dataclass(frozen=True)
class Collected:
    """Every quantity of all trials, and what became of their fits.

    Attributes
    ----------
    columns : dict of array
        Of shape (trials, regularisations).
    done : int
        Trials that are complete; fewer than all after a Ctrl-C.
    computed, reused : int
        Fits made now, and those a store knew.
    """

    columns: dict[str, Array]
    done: int
    computed: int
    reused: int


def collect(trials: Sequence[Trial], workers: Workers, store: Store | None = None) -> Collected:
    """Run trials that share a model and have as many regularisations each, or recall them.

    Results are written to the store as they come. A Ctrl-C leaves the others undone, and what they
    would have measured NaN; it is passed on if nothing is done.
    """
    memory = Memory.of(trials, store)
    reused, left = len(memory.known), memory.missing
    jobs = [trial for _, trial in left]
    try:
        # one thread around all trials too: to find the libraries takes as long as a small trial
        with (
            one_thread,
            store.writing() if store else nullcontext(list) as write,
            closing(workers.finished(jobs, [trial.seconds for trial in jobs])) as finished,
        ):
            for i, result in finished:
                write(memory.learn(*left[i], result))
    except KeyboardInterrupt:
        if not memory.complete:
            raise
    return Collected(memory.columns, memory.complete, len(memory.known) - reused, reused)


def computing_sources() -> str:
    """Hash of the sources that fits depend on."""
    return sources_digest(PACKAGE, NOT_COMPUTING)


def contents(trial: Trial) -> Iterator[dict[str, Any]]:
    """What determines each of a trial's fits, apart from the model and the sources."""
    asked = trial.observables
    at = {m.name: list(m.at) for m in asked if m.at is not None}
    for lam in trial.lams:
        yield {
            "n": trial.sizes.n,
            "p": trial.sizes.p,
            "d": trial.sizes.d,
            "regularisation": lam,
            "data": "equivalent" if trial.equivalent else "original",
            "n_test": trial.n_test,
            "root_seed": str(trial.seed.entropy),
            "seed": trial.seed.spawn_key[0],
            **({"observables": sorted(m.name for m in asked)} if asked else {}),
            **({"at": at} if at else {}),
        }


def _key(content: Mapping[str, Any]) -> str:
    told = json.dumps({**content, "sources": computing_sources()}, sort_keys=True)
    return sha256(told.encode()).hexdigest()
