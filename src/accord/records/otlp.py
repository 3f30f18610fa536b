"""Spans of runs for OpenTelemetry, by the semantic conventions for generative AI.

Source: OpenTelemetry, "Semantic conventions for GenAI agent and framework spans". A run is a trace of its own; its ids
come from the record's id, so a run that is sent twice is the same span. Only the span of the run has tokens and cost:
sums over spans would count them twice otherwise. ``send_spans`` needs the extra ``otel``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from accord import __version__
from accord.agents.registry import shipped_registry
from accord.core.environment import needs_extra
from accord.core.errors import AccordError, Stopped, WrongUsage
from accord.core.frozen import Frozen
from accord.records.models import PublicRecord, RecordAttempt
from accord.records.report import class_of, has_failed

TRACES = "/v1/traces"
_BATCH = 500


class RunSpan(Frozen):
    """One span: ids as numbers, times in nanoseconds since 1970; ``error`` is the class of a failure."""

    name: str
    trace_id: int
    span_id: int
    start: int
    end: int
    parent_id: int | None = None
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    error: str = ""


def spans_of(records: Iterable[PublicRecord]) -> list[RunSpan]:
    """Return the spans of runs of agents: one for each run, and one for each attempt of a run with several. Pure."""
    return [span for record in records if record.is_agent_run for span in _of_run(record)]


def _of_run(record: PublicRecord) -> Iterator[RunSpan]:
    trace_id, span_id = int(record.id, 16), _span_id(record.id, 0)
    end = record.ended_at
    start = record.started_at or end - timedelta(seconds=record.seconds or 0)
    start = min(start, end)
    error = class_of(record) if has_failed(record) else ""
    times = _nanoseconds(start), _nanoseconds(end)
    own = {
        "gen_ai.usage.input_tokens": record.tokens_input,
        "gen_ai.usage.output_tokens": record.tokens_output,
        "accord.record.id": record.id,
        "accord.repository": record.repository,
        "accord.kind": record.kind,
        "accord.cause": record.trigger.cause,
        "accord.started_by": record.trigger.by,
        "accord.disposition": record.result.disposition,
        "accord.outcome": record.result.outcome,
        "accord.cost_usd": record.cost_usd,
        "accord.attempts": len(record.attempts) or None,
        "accord.issue": record.links.issue,
        "accord.pull_request": record.links.pull,
        "accord.workflow_run": record.links.workflow_run,
    }
    attributes = _attributes(record, own)
    yield RunSpan(_name(record.agent), trace_id, span_id, *times, attributes=attributes, error=error)
    for number, attempt in enumerate(record.attempts if len(record.attempts) > 1 else (), 1):
        after = min(start + timedelta(seconds=attempt.seconds or 0), end)
        error = "" if attempt.outcome == "done" else attempt.cause or attempt.outcome
        times = _nanoseconds(start), _nanoseconds(after)
        attributes = _attributes(
            attempt, {"accord.attempt.turn": attempt.turn, "accord.attempt.outcome": attempt.outcome}
        )
        yield RunSpan(_name(attempt.agent), trace_id, _span_id(record.id, number), *times, span_id, attributes, error)
        start = after


def _name(agent: str) -> str:
    return f"invoke_agent {agent}".rstrip()


def _span_id(record_id: str, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{record_id} {number}".encode()).digest()[:8]) or 1


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _provider(*names: str) -> str:
    agents = [(one, agent) for one, agent in shipped_registry().agents.items() if agent.provider]
    starts = {start: agent.provider for one, agent in agents for start in (one, *agent.model_names)}
    found = (provider for name in names for start, provider in starts.items() if name.lower().startswith(start))
    return next(found, next(filter(None, reversed(names)), ""))


def _attributes(
    one: PublicRecord | RecordAttempt, own: Mapping[str, str | int | float | None]
) -> dict[str, str | int | float]:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": _provider(one.model, one.agent),
        "gen_ai.agent.name": one.agent,
        "gen_ai.response.model": one.model,
        **own,
    }
    return {name: value for name, value in attributes.items() if value is not None and value != ""}


def endpoint_of(given: str, environment: Mapping[str, str]) -> str:
    """Return the address for traces: of a base address, that of its signal; by default what the environment names.

    Source: OpenTelemetry, "OTLP Exporter Configuration". Raises WrongUsage without one.
    """
    own = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    base = given.strip() or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    if not given.strip() and own:
        endpoint = own
    elif not base:
        hint = "Pass `--otlp http://localhost:4318`, or set `OTEL_EXPORTER_OTLP_ENDPOINT`."
        raise WrongUsage("No address of an OpenTelemetry collector given.", hint=hint)
    else:
        endpoint = base if base.rstrip("/").endswith(TRACES) else base.rstrip("/") + TRACES
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise WrongUsage(f"`{endpoint[:200]}` is not an HTTP address.", hint="Use one such as `http://localhost:4318`.")
    return endpoint


def check_installed() -> None:
    """Raise WrongUsage where the extra ``otel`` is missing."""
    with needs_extra("otel", "`--otlp`"):
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401


def send_spans(spans: Sequence[RunSpan], endpoint: str) -> None:
    """Send spans to a collector by OTLP over HTTP. Raises Stopped where it does not take them, Refused for good.

    The exporter reads further settings, such as ``OTEL_EXPORTER_OTLP_HEADERS``, from the environment.
    """
    import logging

    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    from accord.core.connections import failure_of, session_for

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # one message of ours says what failed
    resource = Resource.create({"service.name": "accord", "service.version": __version__})
    scope = InstrumentationScope("accord", __version__)

    def context(span: RunSpan, span_id: int) -> SpanContext:
        return SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def readable(span: RunSpan) -> ReadableSpan:
        error = {"error.type": span.error} if span.error else {}
        return ReadableSpan(
            span.name,
            context(span, span.span_id),
            None if span.parent_id is None else context(span, span.parent_id),
            resource,
            {**span.attributes, **error},
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if span.error else StatusCode.UNSET),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=scope,
        )

    session = session_for(endpoint)
    exporter = OTLPSpanExporter(endpoint=endpoint, session=session)
    with ExitStack() as stack:
        stack.callback(exporter.shutdown)
        for first in range(0, len(spans), _BATCH):
            if exporter.export([readable(span) for span in spans[first : first + _BATCH]]) != SpanExportResult.SUCCESS:
                failure = failure_of(session, endpoint)
                if isinstance(failure, AccordError):
                    raise failure
                hint = "Check its address and the headers, and run the same command again."
                reason, hint = (f" ({failure})", failure.hint or hint) if failure else ("", hint)
                raise Stopped(f"The collector at {endpoint} did not take the spans{reason}.", hint=hint)
