"""Workers on a Dask cluster: an existing one, or one started for this command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hiddenmanifold.errors import HiddenManifoldError, InvalidArgumentError, MissingExtraError

PATIENCE = 20
"""Seconds to wait for the scheduler of a cluster."""


OWN = {"set_as_default": False}
"""A client that finds no scheduler would remain the default, and all that dask computes would wait
for it."""


class ClusterError(HiddenManifoldError):
    """A cluster did not answer."""


@contextmanager
def client(address: str) -> Iterator[Any]:
    """A client of the cluster at an address; of a new one with N processes at ``local:N``."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtraError("--cluster", "distributed", "cluster") from None

    where, _, number = address.partition(":")
    if where == "local":
        if not number.isdigit() or int(number) < 1:
            raise InvalidArgumentError("--cluster", address, "local:N with N processes, or tcp://…")
        # on loopback; its own page takes any port
        options = {
            "n_workers": int(number),
            "threads_per_worker": 1,
            "dashboard_address": "127.0.0.1:0",
        }
        with LocalCluster(host="127.0.0.1", **options) as cluster, Client(cluster, **OWN) as ours:
            yield ours
        return
    try:
        ours = Client(address, timeout=PATIENCE, **OWN)
    except (OSError, ValueError) as error:
        raise ClusterError(f"no cluster answers at {address}: {error}") from error
    with ours:
        yield ours
