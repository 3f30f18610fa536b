"""Present receipts of ``accord apply``: text for people; outputs, a summary and annotations for the runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from accord.cli.options import FormatArguments
from accord.cli.output import (
    Json,
    duration,
    error_lines,
    finding_lines,
    issue_or_commit,
    one_line,
    operation_lines,
    print_json,
    printed_output,
)
from accord.cli.step import as_output, findings_table, is_step, long_table, redact, report_step
from accord.cli.step import redacted_cell as cell
from accord.core.findings import Severity, count_of
from accord.engine.receipts import Outcome, Receipt
from accord.results.planner.checks import with_grouped_labels
from accord.text.markdown import mermaid_text

_SIGNS = {"done": "✅", "adopted": "♻️", "skipped": "⏭️", "planned": "📝", "failed": "❌"}
_DETAILS = ("revision", "review")
"""Details of some kinds of results, which become outputs of the same names."""


def show_receipt(receipt: Receipt, file: str, given: FormatArguments) -> int:
    """Print a receipt as text or JSON, and return the exit code of its run."""
    printed_output().ending = f"The result was {_headline(receipt)}."
    if given.is_json:
        print_json(receipt.as_json())
    else:
        print_receipt(receipt, file)
    return receipt.exit_code


def print_receipt(receipt: Receipt, file: str, *, most: int | None = None) -> None:
    """Print findings, at most ``most`` operations of a kind in a row (None: all), and how the run ended."""
    findings = finding_lines(with_grouped_labels(receipt.findings), file)
    for line in (*findings, *operation_lines(receipt.operations, most=most)):
        click.echo(line)
    if receipt.outcome is Outcome.PLANNED:
        _print_differences(receipt.details.get("differences", ()))
    click.echo(click.style(_headline(receipt), bold=True))
    if "review" in receipt.details:
        review = receipt.details["review"]
        click.echo(_review_line(review))
        for each in review["comments"] if receipt.outcome is Outcome.PLANNED else ():
            line = f":{each['line']}" if each["line"] else ""
            click.echo(f"  {each['place']:<10} {one_line(each['path'] + line)}")
    if "commit" in receipt.details:
        click.echo(_commit_line(receipt.details["commit"]))
    if receipt.sanitised:
        click.secho(_sanitised_line(receipt.sanitised), dim=True)
    if receipt.estimated_seconds and receipt.estimated_seconds >= 1:
        click.echo(f"GitHub's rate limits will make this take about {duration(receipt.estimated_seconds)}.")
    if receipt.error:
        click.echo(error_lines(receipt.error), err=True)


def _print_differences(entries: Sequence[Json]) -> None:
    shown = [entry for entry in entries if entry["change"] != "unchanged"]
    for entry in shown:
        name = " ".join(filter(None, (entry["item"], f"#{entry['id']}" if entry["id"] else "")))
        parts = f": {', '.join(entry['parts'])}" if entry["parts"] else ""
        kept = f" (a person's {', '.join(entry['kept'])} stays)" if entry["kept"] else ""
        click.echo(f"{entry['change']:<8} {one_line(name)}{parts}{kept}".rstrip())
        for line in entry.get("diff", "").splitlines():
            color = {"+": "green", "-": "red"}.get(line[:1])
            click.echo(f"    {click.style(one_line(line), fg=color, dim=color is None)}")
    if entries:
        click.echo(f"{len(entries) - len(shown)} of {len(entries)} items are unchanged.")


def _sanitised_line(counts: Mapping[str, int]) -> str:
    return f"sanitised before posting: {', '.join(f'{kind} {count}' for kind, count in counts.items())}"


def _headline(receipt: Receipt) -> str:
    errors = count_of(sum(finding.severity is Severity.ERROR for finding in receipt.findings), "error")
    statuses = [entry.status.value for entry in receipt.operations]
    counts = ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses)) or "nothing to do"
    stop = f"part-way: {counts}" if receipt.operations else "before anything was written"
    is_superseded = any(finding.code.endswith("-superseded") for finding in receipt.findings)
    reason = "a later result counts" if is_superseded else f"{receipt.repository} has everything already"
    sentences = {
        Outcome.APPLIED: f"applied to {receipt.repository}: {counts}",
        Outcome.UNCHANGED: f"unchanged: {reason}",
        Outcome.PLANNED: f"planned for {receipt.repository}: {counts}" if receipt.repository else f"planned: {counts}",
        Outcome.REJECTED: f"rejected: {errors}, nothing was written",
        Outcome.STOPPED: f"stopped {stop}; run the same command again to continue",
        Outcome.REFUSED: f"refused: {counts}" if receipt.operations else "refused, nothing was written",
    }
    requests = f" ({receipt.reads} reads, {receipt.writes} writes)" if receipt.reads or receipt.writes else ""
    return one_line(sentences[receipt.outcome]) + requests


def _review_line(review: Json) -> str:
    verdict = f"verdict {review['verdict_requested']}"
    if review["verdict_applied"] not in (None, review["verdict_requested"]):
        verdict += f" (posted as {review['verdict_applied']})"
    places = {
        "on lines": review["inline"],
        "on files": review["file_level"],
        "in the body": review["in_body"],
        "in open threads": review["kept"],
        "in threads that people ended": review["settled"],
    }
    counts = ", ".join(f"{count} {place}" for place, count in places.items() if count)
    resolved = f"; threads without a finding: {review['resolved']} resolved" if review["resolved"] else ""
    return one_line(f"{verdict}; comments: {counts or 'none'}{resolved}  {review['url'] or ''}")


def _commit_line(commit: Json) -> str:
    if commit["way"] == "push":
        return one_line(f"commit by git push, not signed: {commit['reason']}")
    signed = {True: ", verified", False: ", not verified", None: ""}[commit["verified"]]
    return f"commit over the API in {commit['requests']} requests{signed}"


def report_receipt(receipt: Receipt, file: str, receipt_path: Path | None) -> None:
    """Report ``accord apply``: outputs, the operations as a table, their dependencies as a graph, findings."""
    if not is_step():
        return
    details, shown = receipt.details, with_grouped_labels(receipt.findings)
    outputs = {
        "outcome": receipt.outcome.value,
        "items": as_output(receipt.as_json()["items"]),
        **{name: as_output(details[name]) if name in details else "" for name in _DETAILS},
        "run-key": receipt.run_key,
        "receipt": str(receipt_path or ""),
    }
    rows = []
    for entry in receipt.operations:
        item = receipt.items.get(entry.key)
        target = f"[#{item.id}]({item.url})" if item else issue_or_commit(entry.target)
        status, title = entry.status.value, receipt.titles.get(entry.key, "")
        rows.append([f"{_SIGNS[status]} {status}", entry.op, cell(entry.key), target, cell(title)])
    report_step(
        f"apply: {receipt.outcome.value}",
        outputs,
        cell(str(receipt.error or "")),
        findings_table(shown),
        *(_review_parts(details["review"]) if "review" in details else ()),
        long_table(["Status", "Operation", "Item", "Issue", "Title"], rows),
        f"{receipt.reads} reads and {receipt.writes} writes. Run key `{receipt.run_key}`." if rows else "",
        cell(f"Brought to GitHub: {_commit_line(details['commit'])}") if "commit" in details else "",
        _differences_table(details.get("differences", ())),
        f"{_sanitised_line(receipt.sanitised).capitalize()}." if receipt.sanitised else "",
        _graph(receipt) if receipt.dependencies else "",
        findings=shown,
        file=file,
    )


def _differences_table(entries: Sequence[Json]) -> str:
    """Return how the items of a plan differ from those on GitHub; empty for a plan that only creates items."""
    if all(entry["change"] in ("create", "unchanged") for entry in entries):
        return ""
    rows = [
        [
            cell(entry["item"]),
            issue_or_commit(entry["id"]),
            entry["change"],
            ", ".join(entry["parts"]),
            ", ".join(entry["kept"]),
        ]
        for entry in entries
        if entry["change"] != "unchanged"
    ]
    return long_table(["Item", "Issue", "Change", "Written", "Kept as edited"], rows)


def _review_parts(review: Json) -> Iterator[str]:
    link = f"[review {review['id']}]({review['url']})" if review["url"] else "no review yet"
    verdict = f"Verdict `{review['verdict_requested']}`, applied as `{review['verdict_applied'] or 'unknown'}`: {link}."
    if review["resolved"]:
        verdict += f" Threads resolved, because their finding is gone: {review['resolved']}."
    yield verdict
    rows = [[cell(each["path"]), str(each["line"] or ""), each["place"]] for each in review["comments"]]
    yield long_table(["File", "Line", "Posted"], rows)


def _graph(receipt: Receipt) -> str:
    """Draw the dependencies, with arrows from a blocker to the item that it blocks."""
    names = list(dict.fromkeys(name for pair in receipt.dependencies for name in pair))
    nodes = {name: f"n{i}" for i, name in enumerate(names[:100])}
    lines = ["```mermaid", "graph LR"]
    for name, node in nodes.items():
        item = receipt.items.get(name)
        label = f"#{item.id} {receipt.titles.get(name, name)}" if item else receipt.titles.get(name, name)
        lines.append(f'    {node}["{mermaid_text(redact(label))}"]')
    lines += [
        f"    {nodes[blocker]} --> {nodes[item]}"
        for blocker, item in receipt.dependencies
        if blocker in nodes and item in nodes
    ]
    return "\n".join([*lines, "```"])
