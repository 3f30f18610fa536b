"""A secret of the job reaches no branch, and what the branch had before may be moved."""

from pathlib import Path

import pytest
from support.trees import git, repository

from accord.core.errors import Refused
from accord.git.patches import changes_between
from accord.git.program import Git
from accord.git.secrets import refuse_secrets, secret_findings
from accord.text.redaction import Redactor

SECRET = "correct-horse-battery"


@pytest.mark.parametrize(
    ("to", "more", "is_refused"),
    [("compose.yml", "", False), ("compose.yml", f"again: {SECRET}\n", True), (f"{SECRET}.yml", "", True)],
)
def test_a_file_that_had_the_secret_before_may_be_renamed(tmp_path: Path, to: str, more: str, is_refused: bool) -> None:
    tree = repository(tmp_path, {"old.yml": f"password: {SECRET}\n"})
    git(tree, "mv", "old.yml", to)
    (tree / to).write_text((tree / to).read_text() + more)
    git(tree, "commit", "-qam", "Rename")
    at_hand, redactor = Git(tree), Redactor([SECRET])
    changes = changes_between(at_hand, "HEAD^", "HEAD")
    assert [one.code for one in secret_findings(at_hand, changes, redactor)] == ["secret-in-patch"] * is_refused
    if is_refused:
        with pytest.raises(Refused, match="secret of the job"):
            refuse_secrets(at_hand, changes, redactor.values)
    else:
        refuse_secrets(at_hand, changes, redactor.values)
