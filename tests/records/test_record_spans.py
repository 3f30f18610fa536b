"""Spans of runs: their ids and attributes, and what a collector on 127.0.0.1 receives over OTLP."""

import gzip
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.networks import DEAD, Authority, forget_network, serving_tls
from support.records import record
from support.stage import START

from accord.core.environment import install_command
from accord.core.errors import Refused, Stopped, WrongUsage
from accord.records.otlp import check_installed, endpoint_of, send_spans, spans_of

ATTEMPTS = [
    {"agent": "claude", "outcome": "failed", "cause": "overloaded", "seconds": 60},
    {"agent": "codex", "outcome": "done", "seconds": 120},
]


@dataclass
class Collector:
    """Keeps the requests that it received, and answers with ``status``."""

    url: str
    status: int = 200
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def spans(self) -> list[Any]:
        """Decode the spans of all requests."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        return [
            span
            for _, _, body in self.requests
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            collector.requests.append((self.path, dict(self.headers), body))
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.sdk", reason="no OpenTelemetry: uv sync --all-extras")
    with collecting() as found:
        yield found


def attributes(span: Any) -> dict[str, Any]:
    return {entry.key: getattr(entry.value, entry.value.WhichOneof("value")) for entry in span.attributes}


def test_ids_come_from_the_record_so_that_a_run_sent_twice_is_one_span() -> None:
    (first,), (second,) = spans_of([record(1)]), spans_of([record(1, result={"disposition": "failure"})])
    assert (first.trace_id, first.span_id) == (second.trace_id, second.span_id)
    assert first.trace_id == int(record(1).id, 16)
    assert spans_of([record(2)])[0].span_id != first.span_id


def test_a_run_with_several_attempts_has_a_span_for_each_below_its_own() -> None:
    run, first, second = spans_of([record(attempts=ATTEMPTS)])
    assert (first.parent_id, second.parent_id) == (run.span_id, run.span_id)
    assert len({run.span_id, first.span_id, second.span_id}) == 3
    assert run.start == first.start
    assert first.end == second.start == run.start + 60 * 10**9
    assert second.end <= run.end
    assert (run.error, first.error, second.error) == ("", "overloaded", "")
    assert not any("usage" in name or "cost" in name for name in (*first.attributes, *second.attributes))


def test_times_are_those_of_the_run() -> None:
    (span,) = spans_of([record()])
    assert span.end == int(START.timestamp()) * 10**9
    assert span.end - span.start == 600 * 10**9
    (untimed,) = spans_of([record(started_at=None, seconds=60)])
    assert untimed.end - untimed.start == 60 * 10**9
    (odd,) = spans_of([record(started_at="2030-01-01T00:00:00Z")])
    assert odd.start == odd.end


@pytest.mark.parametrize(
    ("agent", "model", "provider"),
    [
        ("codex", "gpt-5", "openai"), ("codex", "", "openai"), ("mine", "claude-sonnet-5", "anthropic"),
        ("gemini", "", "gcp.gemini"), ("mine", "", "mine"), ("mine", "llama", "mine"),
    ],
)  # fmt: skip
def test_the_provider_is_known_by_the_model_or_the_agent(agent: str, model: str, provider: str) -> None:
    (span,) = spans_of([record(agent=agent, model=model)])
    assert span.attributes["gen_ai.provider.name"] == provider


def test_work_without_an_agent_has_no_span() -> None:
    assert spans_of([record(kind="apply"), record(kind="turn")]) == []


def test_unknown_facts_are_left_out_and_zero_is_not_unknown() -> None:
    (span,) = spans_of([record(model="", tokens_input=0, tokens_output=None, cost_usd=0)])
    assert span.attributes["gen_ai.usage.input_tokens"] == 0
    assert span.attributes["accord.cost_usd"] == 0
    assert not {"gen_ai.usage.output_tokens", "gen_ai.response.model"} & set(span.attributes)


BASE, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("given", "environment", "endpoint"),
    [
        ("http://h:4318", {}, "http://h:4318/v1/traces"),
        ("http://h:4318/", {}, "http://h:4318/v1/traces"),
        ("https://h/otlp/v1/traces", {}, "https://h/otlp/v1/traces"),
        ("", {BASE: "http://h:4318/otlp"}, "http://h:4318/otlp/v1/traces"),
        ("", {BASE: "http://h", TRACES: "http://t/x"}, "http://t/x"),
        ("http://h", {BASE: "http://b", TRACES: "http://t/x"}, "http://h/v1/traces"),
    ],
)
def test_the_address_follows_the_specification(given: str, environment: dict[str, str], endpoint: str) -> None:
    assert endpoint_of(given, environment) == endpoint


@pytest.mark.parametrize("given", ["", "  ", "localhost:4318", "ftp://h", "http://"])
def test_an_address_that_cannot_be_used_is_refused(given: str) -> None:
    with pytest.raises(WrongUsage):
        endpoint_of(given, {})


def test_without_the_extra_the_message_has_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(WrongUsage) as refused:
        check_installed()
    assert install_command("otel") in refused.value.hint


def test_a_collector_receives_the_spans(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    failed = {"disposition": "failure", "error_category": "auth"}
    sent = spans_of([record(1, attempts=ATTEMPTS), record(2, result=failed)])
    send_spans(sent, f"{collector.url}/v1/traces")
    ((path, headers, _),) = collector.requests
    assert (path, headers["x-key"]) == ("/v1/traces", "abc")
    run, first, _, other = collector.spans()
    assert run.trace_id.hex() == record(1).id
    assert first.parent_span_id == run.span_id
    assert (run.name, first.name) == ("invoke_agent codex", "invoke_agent claude")
    assert run.end_time_unix_nano - run.start_time_unix_nano == 600 * 10**9
    values = attributes(run)
    assert values["gen_ai.operation.name"] == "invoke_agent"
    assert values["gen_ai.usage.input_tokens"] == 1000
    assert values["gen_ai.agent.name"] == "codex"
    assert values["accord.issue"] == 1
    assert attributes(other)["error.type"] == "auth"
    assert (run.status.code, other.status.code) == (0, 2)


def test_many_spans_are_sent_in_parts(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.records.otlp._BATCH", 2)
    send_spans(spans_of(record(number) for number in range(5)), f"{collector.url}/v1/traces")
    assert len(collector.requests) == 3
    assert len({span.span_id for span in collector.spans()}) == 5


def test_a_collector_that_refuses_stops_the_command(collector: Collector) -> None:
    collector.status = 400
    with pytest.raises(Stopped, match="did not take the spans"):
        send_spans(spans_of([record()]), f"{collector.url}/v1/traces")


@pytest.mark.slow
def test_a_collector_is_reached_directly_on_this_machine_and_its_certificate_is_verified(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forget_network(monkeypatch)
    authority = Authority(tmp_path, "Example Corp Root").make()
    for name in ("http_proxy", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, DEAD)
    send_spans(spans_of([record()]), f"{collector.url}/v1/traces")
    with serving_tls(authority.issue("127.0.0.1"), collector.url) as port:
        with pytest.raises(Refused, match="is not trusted"):
            send_spans(spans_of([record()]), f"https://127.0.0.1:{port}/v1/traces")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(authority.file))
        send_spans(spans_of([record()]), f"https://127.0.0.1:{port}/v1/traces")
    assert len(collector.requests) == 2


def test_a_proxy_that_keeps_the_spans_from_the_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_network(monkeypatch)
    monkeypatch.setenv("HTTP_PROXY", DEAD)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with pytest.raises(Stopped, match=r"the proxy `http://127\.0\.0\.1:9` of `HTTP_PROXY` does not answer"):
        send_spans(spans_of([record()]), "http://collector.example/v1/traces")
