"""The server: on this machine alone unless told otherwise, and without anything from elsewhere."""

from __future__ import annotations

import hmac
import logging
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread, Timer
from typing import Any
from urllib.parse import urlsplit

from dash import Dash
from flask import Response, request
from werkzeug.serving import BaseWSGIServer, make_server

import hiddenmanifold as hm
from hiddenmanifold.explorer import callbacks, drawing, stream
from hiddenmanifold.explorer.background import dismiss, prepare
from hiddenmanifold.explorer.page import layout
from hiddenmanifold.explorer.reading import views_of
from hiddenmanifold.explorer.upload import FEWER, MOST_BYTES

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LONGEST_REQUEST = 2_000_000
"""Bytes of a request without a file: no view has more."""


def application(*, token: str | None = None, loopback: bool = True) -> Any:
    """The page as an application of Flask."""
    app = Dash(
        "hiddenmanifold.explorer",
        title="hiddenmanifold",
        update_title=None,
        serve_locally=True,
        suppress_callback_exceptions=True,
    )
    app.layout = layout()
    callbacks.register(app)
    app.server.before_request(_guard(token, loopback))
    app.server.add_url_rule("/curve", view_func=_curve)
    for lines in (stream.describe, stream.simulate):
        app.server.add_url_rule(f"/{lines.__name__}", lines.__name__, partial(_streamed, lines))
    app.server.add_url_rule("/learn", view_func=_learn, methods=["POST"])
    if token:
        app.server.after_request(_remember(token))
    return app.server


def _curve() -> Any:
    """The curves of an address while a slider moves; nothing if they make no sense or take long."""
    view, pins = views_of(request.query_string.decode())
    try:
        return {} if view is None or view.slow else drawing.figure(view, pins)
    except hm.HiddenManifoldError:
        return {}


def _streamed(lines: Callable[[str], Iterator[str]]) -> Response:
    return Response(lines(request.query_string.decode()), mimetype="application/x-ndjson")


def _learn() -> Response:
    given = (request.args.get(name, "")[:200] for name in ("name", "label", "task", "gain"))
    name, *asked = given
    lines = stream.learn(name, request.get_data(cache=False), *asked)
    return Response(lines, mimetype="application/x-ndjson")


def _guard(token: str | None, loopback: bool) -> Any:
    """Refuse other sites, names that were made to point here, a wrong token, and too much."""

    def refuse() -> Response | None:
        host = urlsplit(f"//{request.host}").hostname
        if loopback and host not in LOOPBACK:
            return Response("This page answers on this machine only.", 403)
        if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.path != "/":
            return Response("This page does not answer other sites.", 403)
        given = request.args.get("token") or request.cookies.get("token") or ""
        if token and not hmac.compare_digest(given.encode(), token.encode()):
            return Response("Open the page with ?token=… as the server was given.", 403)
        most = MOST_BYTES if request.path == "/learn" else LONGEST_REQUEST
        if (request.content_length or 0) > most:
            return Response(f"More than {most / 1e6:g} MB: {FEWER}.", 413)
        return None

    return refuse


def _remember(token: str) -> Any:
    def remember(response: Response) -> Response:
        if request.args.get("token") == token:
            response.set_cookie("token", token, httponly=True, samesite="Strict")
        return response

    return remember


def listening(host: str, port: int, token: str | None = None) -> BaseWSGIServer:
    """A server that listens, and answers once it is told to."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)
    prepare()
    app = application(token=token, loopback=host in LOOPBACK)
    try:
        return make_server(host, port, app, threaded=True)
    except (OSError, SystemExit) as error:
        raise hm.InvalidArgumentError("port", port, f"a free one of {host}: {error}") from None


@contextmanager
def served(port: int = 0) -> Iterator[str]:
    """The address of the page while it is served in the background; port 0 is a free one.

    A script that calls this needs a main guard: the workers import it.
    """
    server = listening("127.0.0.1", port)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        dismiss()


def serve(host: str, port: int, *, browser: bool, token: str | None = None) -> None:
    """Serve the page until Ctrl-C, and open it in the browser."""
    server = listening(host, port, token)
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{server.server_port}/"
    address += f"?token={token}" if token else ""
    print(f"{address}  (Ctrl-C to end)", flush=True)
    if browser:
        timer = Timer(0.5, webbrowser.open, [address])
        timer.daemon = True
        timer.start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        dismiss()
