"""Access control: which requests are answered, their largest size, and the page's permissions.

Every request that computes is a POST, with which a browser always sends the origin.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import urlencode, urlsplit

from flask import Response, abort, redirect, request

from hiddenmanifold.explorer.upload import FEWER, MOST_BYTES

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LONGEST_REQUEST = 2_000_000
"""Bytes of a request without a file: no view has more."""
FILES = "/learn"
"""Where files are sent to."""
COOKIE = "hiddenmanifold"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",  # plotly styles what it draws
    "img-src": "'self' data: blob:",  # heat maps, and pictures that are saved
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Word:
    """A secret word that opens the page any number of times."""

    refusal = "Open the page with ?token=… as the server was given."

    def __init__(self, word: str) -> None:
        self.word = word

    def accepts(self, told: str) -> bool:
        """Whether this is the word."""
        return _same(told, self.word)


class OneTime(Word):
    """A random word that opens the page once; the next one is announced when it was used."""

    refusal = "Open the page with the newest link that the server has printed: each works once."

    def __init__(self, announce: Callable[[str], None]) -> None:
        super().__init__(secrets.token_urlsafe(16))
        self._announce, self._lock = announce, Lock()

    def accepts(self, told: str) -> bool:
        with self._lock:
            if not super().accepts(told):
                return False
            self.word = secrets.token_urlsafe(16)
        self._announce(self.word)
        return True


@dataclass(frozen=True)
class Guard:
    """Checks every request to the page.

    Parameters
    ----------
    hosts : frozenset of str or None
        Names by which the page may be asked for, so that no name of another site can be made to
        point here; any if None.
    token : Word, optional
        A secret that every client must present.
    key : str
        The cookie that replaces the token once a browser has presented it; it ends with the server.
    """

    hosts: frozenset[str] | None
    token: Word | None = None
    key: str = field(default_factory=secrets.token_urlsafe)

    def protect(self, server: Any, scripts: Sequence[str]) -> None:
        """Stand before an application of Flask; `scripts` are hashes of those within its page."""
        # one byte more than is allowed: what is longer is cut there without an error
        server.config["MAX_CONTENT_LENGTH"] = MOST_BYTES + 1
        parts = {**POLICY, "script-src": " ".join([POLICY["script-src"], *scripts])}
        policy = "; ".join(f"{name} {allowed}" for name, allowed in parts.items())

        def confined(response: Response) -> Response:
            response.headers.update({**HEADERS, "Content-Security-Policy": policy})
            return response

        server.before_request(self.refusal)
        server.after_request(confined)

    def refusal(self) -> Response | None:
        """The answer to whom or what is refused."""
        if self.hosts is not None and _name(f"//{request.host}") not in self.hosts:
            return refused("The page does not answer to this name: see --allow-host.", 403)
        if request.path != "/" and _foreign():
            return refused("The page does not answer other sites.", 403)
        if self.token is not None and (answer := self._asked_for_token(self.token)):
            return answer
        if request.path != FILES:
            body(LONGEST_REQUEST)
        return None

    def _asked_for_token(self, token: Word) -> Response | None:
        """Move the token from the address into a cookie; refuse clients that have neither."""
        told, known = (
            request.args.get("token", ""),
            _same(request.cookies.get(COOKIE, ""), self.key),
        )
        opened = request.path == "/" and request.method == "GET" and told != ""
        if opened and (known or token.accepts(told)):
            others = [(k, v) for k, v in request.args.items(multi=True) if k != "token"]
            answer: Response = redirect(f"/?{urlencode(others)}", 303)
            # not Strict: that cookie would be missing on the way from a link in a mail
            answer.set_cookie(COOKIE, self.key, httponly=True, samesite="Lax")
            return answer
        return None if known else refused(token.refusal, 403)


def refused(reason: str, status: int) -> Response:
    """An answer in plain text, which no browser takes for a page."""
    return Response(reason, status, mimetype="text/plain")


def body(most: int) -> bytes:
    """The body of a request, counted while it is read: chunks do not declare their total."""
    if (request.content_length or 0) <= most:
        content: bytes = request.get_data()
        if len(content) <= most:
            return content
    return abort(refused(f"More than {most / 1e6:g} MB: {FEWER}.", 413))  # type: ignore[no-any-return]


def _foreign() -> bool:
    """Whether a request comes from another site, or another port of this machine."""
    site = request.headers.get("Sec-Fetch-Site")  # only told to https and to this machine
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is not None and origin.partition("://")[2] != request.host


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # brackets that do not close
        return None


def _same(told: str, known: str) -> bool:
    """Whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(told.encode(errors="replace"), known.encode())
