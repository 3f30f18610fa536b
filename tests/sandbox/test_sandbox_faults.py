"""Accidents happen on the socket: what a client loses here it loses on a bad network."""

import json
import socket
import time
from typing import Any

import pytest
from support.clocks import ManualClock
from support.code_repository import Client

from accord_sandbox.server import Exchange, Fault, RunningSandbox


def send(sandbox: RunningSandbox, title: str = "x") -> bytes:
    """Open an issue over a bare socket and return all bytes up to the end of the connection."""
    body = json.dumps({"title": title}).encode()
    head = (
        f"POST /repos/{sandbox.repository}/issues HTTP/1.1\r\nHost: {sandbox.url[7:]}\r\nConnection: close\r\n"
        f"Authorization: token {sandbox.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", int(sandbox.url.rpartition(":")[2])), timeout=600) as connection:
        connection.sendall(head.encode() + body)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def taken_apart(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    ("kind", "status", "issues"),
    [
        ("lost-before", None, 0), ("lost-after", None, 1), ("error-500", 500, 0), ("error-502", 502, 0),
        ("error-503", 503, 0), ("error-500-after", 500, 1), ("secondary-403", 403, 0), ("secondary-429", 429, 0),
        ("secondary-403-bare", 403, 0), ("secondary-429-bare", 429, 0), ("primary-403", 403, 0),
        ("truncated", 201, 1), ("slow", 201, 1),
    ],
)  # fmt: skip
def test_each_accident_looks_as_it_should(
    client: Client, clock: ManualClock, kind: str, status: int | None, issues: int
) -> None:
    sandbox = client.sandbox
    before = len(client("GET", "issues").json())
    sandbox.faults.add(Fault(kind, method="POST", path="/issues$", seconds=0.3))
    begun = time.monotonic()
    answer = send(sandbox)
    if kind == "slow":
        assert time.monotonic() - begun >= 0.3
    assert len(client("GET", "issues").json()) == before + issues
    assert sandbox.requests[-2] == ("POST", "/repos/octo/home/issues", status or 0)
    if status is None:
        assert answer == b""
        return
    got, headers, body = taken_apart(answer)
    assert got == status
    assert (len(body) == int(headers["content-length"])) == (kind != "truncated")
    assert ("retry-after" in headers) == (kind in ("secondary-403", "secondary-429"))
    if kind.endswith("-bare"):
        assert int(headers["x-ratelimit-remaining"]) > 0
    if kind == "primary-403":
        wait = int(headers["x-ratelimit-reset"]) - clock.now().timestamp()
        assert (headers["x-ratelimit-remaining"], 0 < wait <= 1.3) == ("0", True)
    assert taken_apart(send(sandbox))[0] == 201


def test_only_the_nth_matching_requests_fail(client: Client) -> None:
    client.sandbox.faults.add(Fault("error-502", nth=2, times=2, method="get", path="/labels"))
    statuses = [client("GET", path).status_code for path in ("labels", "issues", "labels", "labels", "labels")]
    assert statuses == [200, 200, 502, 502, 200]


def test_other_processes_can_order_faults_and_read_the_log(client: Client) -> None:
    assert client("POST", "/_sandbox/faults", {"kind": "error-500", "times": 9}).status_code == 204
    assert client("GET", "labels").status_code == 500
    assert client("DELETE", "/_sandbox/faults").status_code == 204
    assert client("GET", "labels").status_code == 200
    found = client("GET", "/_sandbox/requests").json()
    assert found == [{"method": "GET", "path": "/repos/octo/home/labels", "status": status} for status in (500, 200)]
    assert client("DELETE", "/_sandbox/requests").status_code == 204
    assert client("GET", "/_sandbox/requests").json() == []
    assert client("GET", "/_sandbox/else").status_code == 404


@pytest.mark.parametrize(
    "document",
    [[], {}, {"kind": "typo"}, {"kind": "slow", "nth": 0}, {"kind": "slow", "path": "("}, {"kind": "slow", "what": 1}],
)
def test_a_fault_that_cannot_be_is_refused(client: Client, document: Any) -> None:
    assert client("POST", "/_sandbox/faults", document).status_code == 422


def test_observers_see_the_change_before_the_client_does(client: Client) -> None:
    seen: list[tuple[str, int | None, bool, int]] = []

    def watch(exchange: Exchange) -> None:
        with client.sandbox.database.reading() as connection:
            count = connection.execute("SELECT count(*) FROM issues WHERE title = 'Watched'").fetchone()[0]
        seen.append((exchange.phase, exchange.status, exchange.applied, count))

    client.sandbox.observers.append(watch)
    try:
        client.issue("Watched")
        client("POST", "issues", {})
        client.sandbox.faults.add(Fault("lost-after"))
        send(client.sandbox, "Watched")
    finally:
        client.sandbox.observers.remove(watch)
    assert seen == [
        ("received", None, False, 0),
        ("applied", 201, True, 1),
        ("received", None, False, 1),
        ("applied", 422, False, 1),
        ("received", None, False, 1),
        ("applied", None, True, 2),
    ]
