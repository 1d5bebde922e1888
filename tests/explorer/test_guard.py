"""Attacks on a server that really runs, and what the page itself sends away."""

import http.client
import io
import json
import mimetypes
import re
import socket
import subprocess
import sys
import zipfile
from http.cookies import SimpleCookie
from threading import Thread
from urllib.parse import urlsplit

import numpy as np
import pytest

import hiddenmanifold as hm
from hiddenmanifold.explorer import guard, server, stream, upload

LEARN = "/learn?gain=10&name="


def ask(address, path="/", method="GET", body=None, **headers):
    """Status, headers and text of an answer."""
    line = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, body, named)
        answer = line.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        line.close()


def post(address, path, body=b"", **headers):
    return ask(address, path, "POST", body, **headers)


# ---------------------------------------------------------------- what is sent


def chunked(address, path, megabytes, *, end=False):
    """The answer to chunks of a megabyte, which do not say how many will come."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port), timeout=60) as line:
        head = f"POST {path} HTTP/1.1\r\nHost: {where.netloc}\r\nTransfer-Encoding: chunked\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        for _ in range(megabytes):
            line.sendall(b"f4240\r\n" + bytes(1_000_000) + b"\r\n")
        if end:
            line.sendall(b"0\r\n\r\n")
        answer = http.client.HTTPResponse(line)
        answer.begin()
        return answer.status, answer.read().decode()


@pytest.mark.slow
def test_chunks_are_counted_while_they_come(address):
    # both are answered although their end never comes
    status, said = chunked(address, LEARN + "a.csv", 21)
    assert (status, said[:16]) == (413, "More than 20 MB:")
    status, said = chunked(address, "/_dash-update-component", 21)
    assert (status, said[:15]) == (413, "More than 2 MB:")
    status, said = chunked(address, LEARN + "a.npy", 1, end=True)
    assert (status, "holds no numbers" in said) == (400, True)  # of what is allowed all is read
    assert post(address, "/curve", bytes(guard.LONGEST_REQUEST + 1))[0] == 413


def array(shape, descr="<f8", size=800):
    """An array whose header tells what it likes."""
    file = io.BytesIO()
    told = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, told)
    return file.getvalue() + bytes(size)


def archive(flags=0, method=zipfile.ZIP_DEFLATED, **parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as written:
        for name, content in parts.items():
            written.writestr(f"{name}.npy", content)
    found = bytearray(file.getvalue())
    for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        found[found.find(mark) + at] |= flags
    return bytes(found)


BOMB = dict.fromkeys((f"part{k}" for k in range(11)), bytes(upload.MOST_UNPACKED // 10))
FILES = {
    "columns": ("a.csv", b"1," * 500_000 + b"1\n1,2\n", "has 500001 columns"),
    "columns below": ("a.csv", b"a,b\n" + b"1," * 500_000, "has 500001 columns"),
    "other separator": ("a.csv", b"a,b\n" + b"1;" * 500_000, "has 500001 columns"),
    "rows": ("a.csv", b"\n" * 1_000_000, "has 999999 rows"),
    "old rows": ("a.csv", b"1\r" * 500_000, "has 499999 rows"),
    "claim": ("a.npy", array((200_000, 200_000)), "shorter than it says"),
    "claim of one": ("a.npy", array((60, 3), "<U100000000"), "shorter than it says"),
    "claim of none": ("a.npy", array((0, 10**12)), "empty"),
    "void": ("a.npy", array((200, 1000), "|V1", 200_000), "holds no numbers"),
    "rows of an array": ("a.npy", array((1_000_000, 1), "|i1", 1_000_000), "has 1000000 rows"),
    "objects": ("a.npy", array((2, 2), "|O"), "could run code"),
    "pickle": ("a.npy", b"\x80\x04]q\x00.", "could run code"),
    "claim within": ("a.npz", archive(X=array((200_000, 200_000))), "shorter than it says"),
    "bomb": ("a.npz", archive(**BOMB), "at most 200 MB"),
    "parts": ("a.npz", archive(**dict.fromkeys(map(str, range(21)), b"")), "has 21 arrays"),
    "objects within": ("a.npz", archive(X=array((2, 2), "|O")), "could run code"),
    "encrypted": ("a.npz", archive(flags=1, X=array((10, 10))), "holds no numbers"),
    "broken": (
        "a.npz",
        archive(X=array((10, 10))).replace(b"x\x9c", b"xx")[:-30],
        "holds no numbers",
    ),
    "no kind": ("<script>.exe", b"", r"\.csv or \.npy or \.npz"),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_are_refused_for_what_they_claim_before_they_are_read(address, kind, monkeypatch):
    name, content, reason = FILES[kind]
    monkeypatch.setattr(stream, "learn", None)
    status, headers, said = post(address, LEARN + name.replace("<", "%3C"), content)
    assert (status, headers.get_content_type()) == (400, "text/plain")
    assert re.search(reason, said)


@pytest.mark.slow
def test_of_many_files_few_are_held_at_a_time(address, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.01)
    for _ in range(server.AT_ONCE):
        assert server._free.acquire(blocking=False)  # refused files have given theirs back
    try:
        status, _, said = post(address, LEARN + "a.csv", b"a,y\n1,2\n")
    finally:
        for _ in range(server.AT_ONCE):
            server._free.release()
    assert (status, said[:20]) == (503, "4 files are being re")
    for _ in range(server.AT_ONCE + 1):
        assert "at least 50 are needed" in post(address, LEARN + "a.csv", b"a,y\n1,2\n")[2]


@pytest.mark.slow
def test_numbers_told_by_the_browser_stay_few_and_numbers(address):
    def saved(points):
        body = {
            "output": "download.data",
            "outputs": {"id": "download", "property": "data"},
            "changedPropIds": ["csv.n_clicks"],
            "inputs": [{"id": "csv", "property": "n_clicks", "value": 1}],
            "state": [
                {"id": "address", "property": "data", "value": "points=2"},
                {"id": "dots", "property": "data", "value": {"setting": "", "points": points}},
            ],
        }
        given = json.dumps(body).encode()
        return post(address, "/_dash-update-component", given, Content_Type="application/json")

    many = [{"x": 1.0, "values": {f"=cmd{k}": 1.0, "q_w": 2.0}} for k in range(5000)]
    status, _, text = saved(many)
    table = json.loads(text)["response"]["download"]["data"]["content"].splitlines()
    assert status == 200
    assert "cmd" not in table[0]
    assert len(table) == 1 + 2 + 8  # names, points, dots
    assert saved([{"x": "=1+1", "values": {}}])[0] == 500


def test_what_asks_for_too_much_is_not_computed(address):
    assert post(address, "/curve?points=1000000000")[2].strip() == "{}"
    assert post(address, "/curve?mode=map&points=10000")[2].strip() == "{}"
    assert "only curves" in post(address, "/simulate?d=100000&seeds=1000000")[2]
    assert post(address, "/curve?points=2&x=%FF&pin=%00")[0] == 200


# ---------------------------------------------------------------- who asks

DATA = (
    "/curve?points=3",
    "/describe?points=0",
    "/simulate?dots=0",
    LEARN,
    "/_dash-update-component",
)


@pytest.mark.parametrize("path", DATA)
def test_other_sites_are_not_answered(address, path):
    own = address.rstrip("/")
    port = int(own.rpartition(":")[2])
    for site in ("same-site", "cross-site", "anything"):
        assert post(address, path, Sec_Fetch_Site=site)[0] == 403
    for origin in (
        "http://evil.example",
        "null",
        "",
        f"http://127.0.0.1:{port + 1}",
        f"{own}.evil",
    ):
        assert post(address, path, Origin=origin)[0] == 403
        assert ask(address, path, "OPTIONS", Origin=origin)[0] == 403  # nor may it ask whether
    assert post(address, path, Host="evil.example")[0] == 403
    assert post(address, path, Origin=own)[0] != 403
    assert post(address, path, Sec_Fetch_Site="same-origin", Origin=own)[0] != 403


def test_a_name_that_was_made_to_point_here_is_not_answered(address):
    for host in ("evil.example", "127.0.0.1.evil.example", "[::1", "", "localhost@evil.example"):
        assert ask(address, Host=host)[0] in (400, 403)
    assert ask(address, Host="localhost:8050")[0] == 200
    assert ask(address, Sec_Fetch_Site="cross-site")[0] == 200  # a link to the page
    assert "_dash-renderer" in ask(address, "/curve")[2]  # what computes is not asked by a link


def test_every_answer_confines_the_page(address):
    answers = [("/", 200), ("/assets/explorer.js", 200), ("/curve", 405), ("/assets/none", 404)]
    for path, status in answers:
        found, headers, _ = ask(address, path, "GET" if status != 405 else "DELETE")
        assert found == status
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Access-Control-Allow-Origin"] is None
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert re.fullmatch(r"'self'( 'sha256-[\w+/]+=*')+", policy["script-src"])
        assert policy["connect-src"] == "'self'"


@pytest.mark.slow
def test_scripts_are_scripts_whatever_the_registry_of_windows_says():
    for ending in (".js", ".css"):
        mimetypes.add_type("text/plain", ending)
    client = server.application(guard.Guard(None)).test_client()
    for name, kind in (("explorer.js", "text/javascript"), ("explorer.css", "text/css")):
        with client.get(f"/assets/{name}") as answer:
            assert answer.mimetype == kind


@pytest.mark.parametrize(
    "path",
    [
        *("/assets/..%2fserver.py", "/assets/../server.py", "/assets/%2e%2e/server.py"),
        *("/assets/..%5cserver.py", "/static/../server.py"),
        *("/_dash-component-suites/dash/../dash.py", "/_dash-component-suites/os/path.py"),
    ],
)
def test_no_path_leads_out_of_the_assets(address, path):
    status, _, text = ask(address, path)
    assert status >= 400
    assert "import" not in text
    assert "root:" not in text


@pytest.mark.parametrize("body", [b"{}", b"[" * 500_000, b'{"output":"..no.data.."}', b"\xff"])
def test_an_error_tells_nothing_of_the_inside_and_nothing_is_reflected(address, body):
    status, _, text = post(
        address, "/_dash-update-component", body, Content_Type="application/json"
    )
    assert status in (400, 500)
    assert not re.search(r"Traceback|\.py|hiddenmanifold", text)
    assert "alert" not in ask(address, "/%3Cscript%3Ealert(1)?x=%3Cscript%3Ealert(1)")[2].replace(
        'alert("Dash', ""
    )  # that of Dash, to Internet Explorer


@pytest.mark.slow
def test_whoever_says_nothing_is_left_and_others_are_answered_meanwhile(address, monkeypatch):
    monkeypatch.setattr(server.Handler, "timeout", 1.0)
    where = urlsplit(address)
    lines = [socket.create_connection((where.hostname, where.port), timeout=30) for _ in range(40)]
    try:
        for k, line in enumerate(lines):
            line.sendall(b"GET / HTTP/1.1\r\nHost: a" if k % 2 else b"")
        assert ask(address)[0] == 200
        for line in lines:
            assert line.recv(1) == b""
    finally:
        for line in lines:
            line.close()


# ---------------------------------------------------------------- beyond this machine


@pytest.fixture
def listening():
    """Addresses of servers on all addresses of this machine, asked on 127.0.0.1."""
    begun = []

    def begin(**given):
        one = server.listening("0.0.0.0", 0, **given)
        begun.append((one, Thread(target=one.serve_forever, daemon=True)))
        begun[-1][1].start()
        return f"http://127.0.0.1:{one.server_port}/"

    yield begin
    for one, thread in begun:
        one.shutdown()
        one.server_close()
        thread.join()


@pytest.mark.slow
def test_the_network_needs_a_token_or_a_name(listening):
    for token in (None, ""):
        with pytest.raises(
            hm.InvalidArgumentError,
            match="token is missing: give a token, or names, to listen on 0.0.0.0",
        ):
            server.listening("0.0.0.0", 0, token)
    for name in ("", "page.example:8050", "http://page.example"):
        with pytest.raises(hm.InvalidArgumentError, match="without a port"):
            server.listening("0.0.0.0", 0, names=[name])
    named = listening(names=["Page.Example", "fe80::1"])
    for host in ("page.example:80", "PAGE.example", "[fe80::1]:80", "localhost"):
        assert ask(named, Host=host)[0] == 200
    assert ask(named, Host="evil.example")[0] == 403
    both = listening(names=["page.example"], token="word")
    assert ask(both, "/?token=word", Host="evil.example")[0] == 403
    assert ask(both, Host="page.example")[0] == 403


def test_a_token_is_taken_out_of_the_address_and_kept_as_another_word(listening, capfd):
    address = listening(token="wörd & more")
    told = "/?points=5&token=w%C3%B6rd+%26+more&pin=a%3Db&pin=//evil.example"
    for path in ("/", "/?token=word", "/?token=", "/?token=%FF", "/curve?token=w%C3%B6rd+%26+more"):
        assert ask(address, path, Host="any.example")[0] == 403
    for cookie in (
        "hiddenmanifold=",
        "hiddenmanifold=w\xc3\xb6rd",
        "token=word",
        "hiddenmanifold=\xff",
    ):
        assert ask(address, Cookie=cookie)[0] == 403
    status, headers, text = ask(address, told, Host="any.example")
    assert (status, headers["Referrer-Policy"]) == (303, "no-referrer")
    assert headers["Location"] == "/?points=5&pin=a%3Db&pin=%2F%2Fevil.example"
    cookie = SimpleCookie(headers["Set-Cookie"])["hiddenmanifold"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert "rd" not in headers["Location"] + text
    assert cookie.value != "wörd & more"
    kept = {"Cookie": f"hiddenmanifold={cookie.value}", "Host": "any.example"}
    assert ask(address, headers["Location"], **kept)[0] == 200
    assert post(address, "/curve?points=3", **kept)[0] == 200
    other = listening(token="wörd & more")
    assert ask(other, **kept)[0] == 403  # it ends with its server
    ask(address, "/?token=secret", "NONE")
    with socket.create_connection(("127.0.0.1", urlsplit(address).port)) as line:
        line.sendall(b"GET /?token=secret HTTP/x\r\n\r\n")
        line.recv(1000)
    assert "secret" not in "".join(capfd.readouterr())  # nor is it written down


@pytest.mark.slow
def test_the_command_makes_a_token_where_strangers_can_ask():
    command = [sys.executable, "-m", "hiddenmanifold", "explore", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--host", "0.0.0.0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        address = urlsplit(process.stdout.readline().split()[0])
        assert re.fullmatch(r"token=[\w-]{22}", address.query)
        assert ask(address.geturl())[0] == 403
        link = f"/?{address.query}"
        other = urlsplit(process.stdout.readline().split()[0])  # that a phone can use
        assert (other.port, other.query) == (address.port, address.query)
        assert ask(address.geturl(), link, "HEAD")[0] == 403  # a preview does not use it up
        status, headers, _ = ask(address.geturl(), link)
        assert (status, headers["Location"]) == (303, "/")
        cookie = {"Cookie": headers["Set-Cookie"].split(";")[0]}
        assert ask(address.geturl(), link)[0] == 403  # it works once
        assert ask(address.geturl(), link, **cookie)[0] == 303  # but in the browser that used it
        following = urlsplit(process.stdout.readline().split()[0])
        assert following.hostname == other.hostname
        assert ask(following.geturl(), f"/?{following.query}")[0] == 303
        process.terminate()
        _, complaints = process.communicate(timeout=60)
    assert "knows the token can use the page, which is not encrypted" in complaints
