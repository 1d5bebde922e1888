"""Which fits of some trials a store holds: a row for each regularisation of each trial."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from hiddenmanifold.arrays import Array
from hiddenmanifold.numerics.threads import one_thread
from hiddenmanifold.parallel.workers import Workers
from hiddenmanifold.simulation.experiment import Trial
from hiddenmanifold.storage import Row, Store, identity

ALGORITHM_VERSION = 1
"""Version of the algorithm that computes a row: the drawn samples, the fit and what is measured.

Raise it in a commit that changes the numbers of a fit that reaches its minimum, and in no other:
stored rows of other versions are listed and exported, and computed anew instead of reused.
"""
FORMER_SOURCES = {"f316fe0978d652e1dc701eb08ea2fe08e7e4fd22b5b398e58fe6b109d230bda8": 1}
"""Versions of the algorithm by the hash of sources that commit 14b87c2 wrote in their place."""


def algorithm_version(row: Row) -> int | None:
    """The version of the algorithm that computed a row; None if it is not known."""
    text = row.algorithm
    return int(text) if text.isdecimal() and len(text) < 10 else FORMER_SOURCES.get(text)


def reusable(row: Row) -> bool:
    """Whether a row is a fit by the current version of the algorithm."""
    return row.kind == "fit" and algorithm_version(row) == ALGORITHM_VERSION


@dataclass(frozen=True)
class Memory:
    """Trials, the keys of their rows, and the numbers that are known.

    Attributes
    ----------
    keys : list of tuple of str
        Of each trial, one per regularisation.
    known : dict
        Numbers by key.
    model : str
        Identity of the model.
    reused, outdated : int
        Fits that the store knew, and those that it holds by another version of the algorithm.
    """

    trials: Sequence[Trial]
    keys: list[tuple[str, ...]]
    known: dict[str, Mapping[str, Any]]
    model: str = ""
    reused: int = 0
    outdated: int = 0

    @classmethod
    def of(cls, trials: Sequence[Trial], store: Store | None) -> Memory:
        """Look up trials, which share a model, in a store; without a store no fit is known."""
        if store is None:
            numbers = range(len(trials))
            return cls(trials, [tuple(f"{i}/{lam}" for lam in trials[i].lams) for i in numbers], {})
        model = identity(trials[0].model)
        keys = [tuple(map(_key, contents(trial, model))) for trial in trials]
        asked = {key for some in keys for key in some}
        rows, outdated = store.found(asked), set()
        for row in store.rows_by_others(str(ALGORITHM_VERSION)):
            if (key := _key(row.content)) in asked and key not in rows:
                if reusable(row):
                    rows[key] = row
                else:
                    outdated.add(key)
        names = set(trials[0].shapes)
        known = {key: row.numbers for key, row in rows.items() if names <= row.numbers.keys()}
        return cls(trials, keys, known, model, len(known), len(outdated - known.keys()))

    @property
    def missing(self) -> list[tuple[tuple[str, ...], Trial]]:
        """Trials with fits still to make, and their keys; a fit that points share is made once."""
        left, planned = [], set(self.known)
        for trial, keys in zip(self.trials, self.keys, strict=True):
            given = zip(keys, trial.lams, strict=True)
            lams = {key: lam for key, lam in given if key not in planned}
            planned.update(lams)
            if lams:
                left.append((tuple(lams), replace(trial, lams=tuple(lams.values()))))
        return left

    @property
    def computed(self) -> int:
        """Fits made since."""
        return len(self.known) - self.reused

    @property
    def complete(self) -> int:
        """Number of trials whose fits are all known; fewer than all after a Ctrl-C."""
        return sum(all(key in self.known for key in keys) for keys in self.keys)

    def learn(
        self, keys: Sequence[str], trial: Trial, result: Mapping[str, Array]
    ) -> Iterator[Row]:
        """Record the missing fits of a trial, and yield their rows for the store."""
        for i, (key, content) in enumerate(zip(keys, contents(trial, self.model), strict=True)):
            self.known[key] = {name: values[i].tolist() for name, values in result.items()}
            yield Row(key, "fit", content, self.known[key], str(ALGORITHM_VERSION))

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


def collect(trials: Sequence[Trial], workers: Workers, store: Store | None = None) -> Memory:
    """Run trials that share a model and have as many regularisations each, or recall them.

    Results are written to the store as they come. A Ctrl-C leaves the others undone, and what they
    would have measured NaN; it is passed on if nothing is done.
    """
    memory = Memory.of(trials, store)
    left = memory.missing
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
    return memory


def contents(trial: Trial, model: str) -> Iterator[dict[str, Any]]:
    """The inputs of each fit of a trial, apart from the algorithm; `model` is its identity."""
    at = {name: list(margins) for name, margins in trial.vectors.items()}
    for lam in trial.lams:
        yield {
            "model": model,
            "n": trial.sizes.n,
            "p": trial.sizes.p,
            "d": trial.sizes.d,
            "regularisation": lam,
            "data": "equivalent" if trial.equivalent else "original",
            "n_test": trial.n_test,
            "root_seed": str(trial.seed.entropy),
            "seed": trial.seed.spawn_key[0],
            **({"observables": sorted(trial.observables)} if trial.observables else {}),
            **({"at": at} if at else {}),
            **trial.further_contents,
        }


def _key(content: Mapping[str, Any]) -> str:
    """The key of a row, in a form in which every later version can make it from its content."""
    told = json.dumps({**content, "algorithm": ALGORITHM_VERSION}, sort_keys=True)
    return sha256(told.encode()).hexdigest()
