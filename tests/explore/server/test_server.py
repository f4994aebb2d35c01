"""The server, started by the command: its pages, its limits, many clients, a browser."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

from tests.support.browser import chromium, new_page

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")

ROOT = Path(__file__).parents[3]
BAYDIN = {"f": "ln(x1) + x1*x2 - sin(x2)", "at": "x1=2,x2=5"}
CLIENTS = 50


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "difflab", "serve", "--port", "0", "--timeout", "600"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip().removeprefix("http://").rstrip("/")
    process.terminate()
    _, errors = process.communicate(timeout=600)
    assert "Traceback" not in errors, errors


def get(
    address: str, path: str = "/", headers: dict[str, str] | None = None, **query: str
) -> tuple[int, str, dict[str, str]]:
    connection = HTTPConnection(address, timeout=300)
    connection.request(
        "GET", f"{path}?{urlencode(query)}" if query else path, headers=headers or {}
    )
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}


def test_the_first_page_has_an_example(address: str) -> None:
    status, page, headers = get(address)
    assert status == 200
    assert "ln(x1) + x1*x2 - sin(x2)" in page
    assert "set-cookie" not in headers
    assert headers["cache-control"] == "no-store"


def test_rows_stream_as_they_are_judged(address: str) -> None:
    status, text, _ = get(address, "/rows", **BAYDIN)
    rows = [json.loads(line) for line in text.splitlines()]
    assert status == 200
    assert {row["name"] for row in rows[:-1]} >= {"forward", "reverse", "symbolic"}
    assert rows[-1]["whole"]["at"] == "x1 = 2, x2 = 5"


HOSTILE = [
    ("x*", ""),
    ("x: [100000, 100000]; sum(x)", ""),
    ("(" * 4000, ""),
    ("where(x)", "x=1"),
    ("x + y", "x=1"),
    ("x", "x=nan"),
    ("x", "y=2"),
    ("A: [5, 5]; det(A)", ""),
    ("__import__('os').system('x')", ""),
]


@pytest.mark.parametrize(("text", "at"), HOSTILE)
def test_hostile_input_is_refused_as_on_the_command_line(
    address: str, text: str, at: str, tmp_path: Path
) -> None:
    from html import unescape

    status, page, _ = get(address, f=text, at=at)
    assert status == 422
    said = unescape(page.partition('role="alert">')[2].partition("</pre>")[0])
    command = [sys.executable, "-m", "difflab", "explore", text, "-o", str(tmp_path / "p.html")]
    done = subprocess.run(
        [*command, *(["--at", at] if at else [])],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert said.splitlines()[0].partition(", and ")[0] in done.stderr  # free memory differs


def test_long_and_deep_input_has_an_answer(address: str) -> None:
    assert "server takes 10,000" in get(address, f="+".join(["x"] * 6000))[1]
    assert get(address, f="(" * 4000 + "x" + ")" * 4000, at="x=1")[0] == 200
    with suppress(ConnectionError):  # closed before all of it was sent
        assert get(address, f="x" * 200_000)[0] in (400, 414, 431)
    assert get(address)[0] == 200


def test_files_are_not_read(address: str) -> None:
    status, page, _ = get(address, f="x", at="x=@/etc/passwd")
    assert status == 422
    assert "the server reads no files" in page


def test_text_of_the_user_is_text(address: str) -> None:
    hostile = "x</script><script>alert(1)</script>"
    for query in ({"f": hostile}, {"f": "x", "at": hostile}, {"f": f"x # {hostile}"}):
        assert "<script>alert" not in get(address, **query)[1]


def test_other_hosts_and_other_sites_are_refused(address: str) -> None:
    for headers in (
        {"Host": "evil.example"},
        {"Host": f"evil.example:{address.partition(':')[2]}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ):
        assert get(address, headers=headers)[0] == 403, headers
    assert get(address, "/rows", {"Sec-Fetch-Site": "cross-site"}, **BAYDIN)[0] == 403
    assert get(address, headers={"Origin": f"http://{address}"})[0] == 200


def test_fifty_clients_at_once(address: str) -> None:
    def ask(number: int) -> tuple[int, bool]:
        status, page, _ = get(address, f=f"x*sin(x) + {number}", at="x=2")
        return status, f"x*sin(x) + {number}" in page

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert list(clients.map(ask, range(CLIENTS))) == [(200, True)] * CLIENTS


def test_a_formula_is_edited_in_a_browser(address: str) -> None:
    problems: list[str] = []
    with chromium() as browser:
        page = new_page(browser)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.goto(f"http://{address}/")
        page.fill("[name=f]", "x^3 + abs(y)")
        page.fill("[name=at]", "x=2,y=0")
        page.click("text=Show")
        page.wait_for_load_state()
        assert "x^3" in page.inner_text("#formula")
        page.locator("#verdicts td", has_text="reverse").first.wait_for()
        page.get_by_text("kink").first.wait_for()
        assert "12" in page.inner_text("#result")
        page.press("body", "3")
        page.press("body", "End")
        assert "f=x%5E3" in page.url
        assert "mode=reverse" in page.url
    assert problems == []


def test_without_the_extra_the_command_names_it(monkeypatch: Any) -> None:
    from difflab.errors import MissingDependencyError
    from difflab.explore.server.app import Settings, application

    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'difflab\[web\]'"):
        application(Settings(lambda text: None))


def test_a_port_in_use_is_named(address: str) -> None:
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "difflab", "serve", "--port", port]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


# --- clients that leave --------------------------------------------------------------------------

LEAVING, STAYING = 24, 6
SLOW = "x: [60]; det(reshape(x, [6, 10]) @ reshape(x, [10, 6]))"


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one, with their command lines."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            parents[int(folder.name)] = int(stat[1]), command
    found: dict[int, str] = {}
    level = {pid}
    while level:
        level = {child for child, (parent, _) in parents.items() if parent in level}
        found |= {child: parents[child][1] for child in level}
    return found


def leave(address: str, path: str, delay: float) -> None:
    """Ask, and leave after some seconds, whatever the server does."""
    host, _, port = address.partition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=60) as client:
        query = urlencode({"f": SLOW})
        request = f"GET {path}?{query} HTTP/1.1\r\nHost: {address}\r\n\r\n"
        client.sendall(request.encode())
        sleep(delay)


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are counted in /proc")
def test_clients_that_leave_at_any_moment_leave_nothing(rng: np.random.Generator) -> None:
    left_alone(LEAVING, rng)


def left_alone(clients: int, rng: np.random.Generator) -> None:
    """Check that nothing remains of clients that leave, and that Ctrl-C ends the server."""
    command = [sys.executable, "-m", "difflab", "serve", "--port", "0", "--timeout", "600"]
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip().removeprefix("http://").rstrip("/")
        assert get(address)[0] == 200
        idle = descendants(server.pid)  # multiprocessing's own two
        delays = rng.exponential(0.4, clients).tolist()
        paths = rng.choice(["/", "/rows"], clients).tolist()
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(leave, [address] * clients, paths, delays))
        end = monotonic() + 300
        while (left := descendants(server.pid).keys() - idle.keys()) and monotonic() < end:
            sleep(0.5)
        assert not left
        assert get(address)[0] == 200
        with ThreadPoolExecutor(STAYING) as threads:
            staying = [threads.submit(get, address, "/rows", f=SLOW) for _ in range(STAYING)]
            while not descendants(server.pid).keys() - idle.keys() and monotonic() < end:
                sleep(0.1)
            server.send_signal(signal.SIGINT)
            answers = [client.result() for client in staying]
        assert {status for status, *_ in answers} == {200}
        assert all("the server was stopped" in text for _, text, _ in answers)
        _, errors = server.communicate(timeout=300)
    except BaseException:
        server.kill()
        raise
    assert errors == "Ctrl-C stops the server\ndifflab: interrupted\n"
    assert not descendants(server.pid)
