"""A change that is tried on a copy: what would become of a session, and of its issue, and nothing written.

The whole change is made, by the same code as ever, so that a rehearsal says what a run would say.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from accord.github.comments import Comment
from accord.sessions.folder import FILES, read_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.github.client import GitHub
    from accord.github.models import Identity


@contextmanager
def rehearsed(folder: Path) -> Iterator[Path]:
    """Copy the files of a session to a folder of its name that is gone afterwards. Raises WrongUsage without one."""
    session = read_session(folder)
    with TemporaryDirectory(prefix="accord-rehearsal-") as root:
        copy = Path(root) / folder.absolute().parent.name / session.name
        copy.mkdir(parents=True)
        for name in FILES:
            place = folder / name
            if place.is_symlink():
                (copy / name).symlink_to(place.readlink())
            elif place.is_file():
                shutil.copyfile(place, copy / name)
        yield copy


class Listening:
    """A repository that is read, and not written to; ``said`` is what would have been written in comments."""

    def __init__(self, github: GitHub) -> None:
        self._github = github
        self.said: list[str] = []

    def identity(self) -> Identity:
        """Ask who we are."""
        return self._github.identity()

    def may_write(self, login: str) -> bool:
        """Ask whether an account may push to the repository."""
        return self._github.may_write(login)

    def comments(self, number: int) -> Iterator[Comment]:
        """List the comments of an issue or pull request."""
        return self._github.comments(number)

    def create_comment(self, number: int, body: str) -> Comment:  # noqa: ARG002 - as the port has it
        """Remember what would be commented."""
        self.said.append(body)
        return Comment(0, "", body, self.identity().login)

    def change_comment(self, comment_id: int, body: str) -> Comment:
        """Remember what the comment would say."""
        self.said.append(body)
        return Comment(comment_id, "", body, "")

    def delete_comment(self, comment_id: int) -> None:
        """Delete nothing."""
