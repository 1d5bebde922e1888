"""The web server: on this machine only by default, and it loads nothing from other hosts."""

from __future__ import annotations

import errno
import logging
import mimetypes
import os
import socket
import warnings
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import BoundedSemaphore, Thread, Timer
from typing import Any
from urllib.parse import urlencode

from dash import Dash
from flask import Response, request
from werkzeug.serving import (
    BaseWSGIServer,
    WSGIRequestHandler,
    get_sockaddr,
    make_server,
    select_address_family,
)

import hiddenmanifold as hm
from hiddenmanifold.explorer import callbacks, plots, stream, upload
from hiddenmanifold.explorer.guard import FILES, LOOPBACK, Guard, OneTime, Word, body, refused
from hiddenmanifold.explorer.layout import layout
from hiddenmanifold.explorer.parse import views_of
from hiddenmanifold.explorer.worker_pool import dismiss, prepare

AT_ONCE, PATIENCE = 4, 10.0
"""Files that are held at a time, and seconds that one more waits for its turn."""
LINES = "application/x-ndjson"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%favicon%}{%css%}</head>
<body>{%app_entry%}{%config%}{%scripts%}{%renderer%}</body>
</html>"""
"""The page around the components."""
KINDS = {".js": "text/javascript", ".css": "text/css"}
"""What its files are; the registry of Windows may say otherwise, and browsers then refuse them."""
OTHERS = "for other devices in this network"
_free = BoundedSemaphore(AT_ONCE)


class Handler(WSGIRequestHandler):  # type: ignore[misc]
    """Closes idle connections, and logs no addresses, which may contain the token."""

    timeout = 30.0

    def log(self, type: str, message: str, *args: Any) -> None: ...


def application(guard: Guard) -> Any:
    """The page as an application of Flask."""
    for ending, kind in KINDS.items():
        mimetypes.add_type(kind, ending)
    app = Dash(
        "hiddenmanifold.explorer",
        title="hiddenmanifold",
        update_title=None,
        serve_locally=True,
        suppress_callback_exceptions=True,
        index_string=PAGE,
    )
    app.layout = layout()
    callbacks.register(app)
    guard.protect(app.server, app.csp_hashes())
    add = partial(app.server.add_url_rule, methods=["POST"])
    add("/curve", view_func=_curve)
    for lines in (stream.describe, stream.simulate):
        add(f"/{lines.__name__}", lines.__name__, partial(_streamed, lines))
    add(FILES, view_func=_learn)
    return app.server


def _curve() -> Any:
    """The curves of an address while a slider moves; nothing if they make no sense or take long."""
    view, pins = views_of(request.query_string.decode(errors="replace"))
    try:
        return {} if view is None or view.slow else plots.figure(view, pins)
    except hm.HiddenManifoldError:
        return {}


def _streamed(lines: Callable[[str], Iterator[str]]) -> Response:
    return Response(lines(request.query_string.decode(errors="replace")), mimetype=LINES)


def _learn() -> Response:
    fields = ("name", "label", "task", "gain", "positive", "loss", "page")
    name, *asked, positive, loss, page = (request.args.get(one, "")[:200] for one in fields)
    if not _free.acquire(timeout=PATIENCE):
        return refused(f"{AT_ONCE} files are being read: try again later.", 503)
    with ExitStack() as held:
        held.callback(_free.release)
        content = body(upload.MOST_BYTES)
        try:
            upload.check(name, content)
        except hm.InvalidArgumentError as error:
            return refused(f"{error}.", 400)
        others = {"positive": positive, "loss": loss, "page": page}
        response = Response(stream.learn(name, content, *asked, **others), mimetype=LINES)
        response.call_on_close(held.pop_all().close)
        return response


def listening(
    host: str, port: int, token: str | Word | None = None, names: Sequence[str] = ()
) -> BaseWSGIServer:
    """A server that listens, and answers once it is started.

    Parameters
    ----------
    host, port : str, int
        Where to listen.
    token : str or Word, optional
        A secret that every client must present.
    names : sequence of str
        Names by which the page may be asked for, beside those of this machine.
    """
    known = host in LOOPBACK or names
    if not known and not token:
        raise hm.InvalidArgumentError.because(
            "token", "is missing", f"give a token, or names, to listen on {host}"
        )
    for name in names:
        if not name or "/" in name or name.count(":") == 1:
            raise hm.InvalidArgumentError(
                "names", name, "a host name without http:// and without a port"
            )
    hosts = frozenset({*LOOPBACK, *(name.strip("[]").lower() for name in names)})
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)
    prepare()
    secret = Word(token) if isinstance(token, str) and token else token
    app = application(Guard(hosts if known else None, secret or None))
    _check_free(host, port)
    try:
        return make_server(host, port, app, threaded=True, request_handler=Handler)
    except (OSError, SystemExit) as error:
        raise hm.InvalidArgumentError.because(
            "port", f"{port} of {host} cannot be used", str(error)
        ) from None


def _check_free(host: str, port: int) -> None:
    """Raise unless a server can listen there; werkzeug would print, and exit with a number."""
    try:
        family = select_address_family(host, port)
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            if os.name == "posix":  # elsewhere this would share a port that is taken
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(get_sockaddr(host, port, family))
    except OSError as error:
        problem, remedy = f"{port} of {host} cannot be used", f"{error.strerror or error}"
        if error.errno == errno.EADDRINUSE:
            problem += ", another program has it"
            remedy = "end that program, or give another port; 0 finds a free one"
        elif error.errno == errno.EACCES:
            remedy = "ports below 1024 need more rights; give a larger one"
        elif error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
            remedy = "give as host an address of this machine, such as 127.0.0.1, or 0.0.0.0"
        raise hm.InvalidArgumentError.because("port", problem, remedy) from None


@contextmanager
def served(port: int = 0) -> Iterator[str]:
    """The address of the page while it is served in the background; port 0 is a free one."""
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


def _own_address() -> str:
    """The address of this machine in its network, or else its name; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # chooses the interface that leads elsewhere
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def serve(
    host: str, port: int, *, browser: bool, token: str | None = None, names: Sequence[str] = ()
) -> None:
    """Serve the page until Ctrl-C, and open it in the browser.

    Beyond this machine links are made that work once if neither a token nor names are given.
    """
    secret = Word(token) if token else None
    if host not in LOOPBACK and not names:
        secret = secret or OneTime(
            lambda _: print(f"{link(known)}  (the next browser)", flush=True)
        )
    server = listening(host, port, secret, names)
    everywhere = host in ("0.0.0.0", "::")
    shown = "127.0.0.1" if everywhere else host
    # a phone in the audience cannot use an address of this machine alone
    known = shown if not everywhere else names[0] if names else _own_address()

    def link(name: str) -> str:
        path = f"?{urlencode({'token': secret.word})}" if secret else ""
        return f"http://{f'[{name}]' if ':' in name else name}:{server.server_port}/{path}"

    address = link(shown)
    print(f"{address}  (Ctrl-C to end)", flush=True)
    if known != shown:
        once = isinstance(secret, OneTime)
        words = "for one other device; --token WORD makes a link for many" if once else OTHERS
        print(f"{link(known)}  ({words})", flush=True)
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
