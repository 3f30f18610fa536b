"""``accord check`` on sessions: a folder as a whole, and documents for which it matters who speaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.sessions import GATES, NAME, SPEC, agent_output, make_session

from accord.cli.reference import MACHINES
from accord.git.program import Git

if TYPE_CHECKING:
    from conftest import Accord


def test_a_session_is_checked_as_a_folder_and_file_by_file(accord: Accord, tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES[:1], texts={"spec.md": SPEC[:20]})
    for arguments in ([], ["--kind", "session"]):
        ended = accord("check", *arguments, "--format", "json", str(folder))
        assert ended.code == 1
        documents = {document["path"]: document for document in ended.document["documents"]}
        whole = documents[str(folder)]
        assert whole["kind"] == "session"
        assert [finding["code"] for finding in whole["findings"]] == ["gate-open"]
        assert [finding["code"] for finding in documents[str(folder / "spec.md")]["findings"]] == [
            "section-missing",
            "section-missing",
        ]
        assert documents[str(folder / "status.json")]["kind"] == "session-status"


def test_a_valid_session_is_ok_and_so_is_each_of_its_documents(accord: Accord, tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES)
    ended = accord("check", str(folder))
    assert ended.code == 0
    assert f"{NAME}: ok (session)" in ended.out
    files = [str(folder / name) for name in ("status.json", "tasks.yaml", "acceptance.json")]
    assert accord("check", *files).code == 0


def test_a_secret_in_the_name_of_a_session_reaches_no_later_step(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, output = "correct-horse-battery", accord.home / "output"
    monkeypatch.setenv("DEPLOY_PASSWORD", secret)
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES)
    accord("session", "check", folder.rename(folder.with_name(f"2026-01-01_{secret}")))
    told = output.read_text(encoding="utf-8")
    assert '{"2026-01-01_[redacted: secret of the environment]":{' in told
    assert secret not in told


def test_a_folder_of_no_kind_is_wrong_usage(accord: Accord, tmp_path: Path) -> None:
    assert accord("check", str(tmp_path)).code == 2
    assert accord("check", "--kind", "session", str(tmp_path / "nothing")).code == 2
    assert accord("check", "--kind", "session-status", str(tmp_path)).code == 2


@pytest.mark.parametrize("folders", [[], [f".agents-work/{NAME}"]])
def test_a_base_that_is_not_there_is_wrong_usage(accord: Accord, folders: list[str]) -> None:
    make_session(Path.cwd())
    Git(Path.cwd())("init", "--quiet")
    ended = accord("session", "check", *folders, "--base", "origin/none")
    assert (ended.code, "origin/none" in ended.err) == (2, True)


def test_the_role_of_an_output_may_be_given(accord: Accord) -> None:
    path = accord.file("output.json", agent_output(status="NEEDS_INFO"))
    assert accord("check", "--role", "Researcher", path).code == 0
    ended = accord("check", "--role", "Coder", path)
    assert ended.code == 1
    assert "status-of-other-role" in ended.out


def test_the_machines_of_sessions_are_drawn(accord: Accord) -> None:
    for name in ("session", "session-lean", "session-task"):
        assert name in MACHINES
        assert accord("machine", "show", name).out.startswith("stateDiagram-v2")
