"""The committed checkpoints that an option names."""

from typing import TYPE_CHECKING

from seawall.errors import NoSuchCopyError

if TYPE_CHECKING:
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord


def chosen_commits(view: "LogView", step: int | None, every: bool = False) -> "list[CommitRecord]":
    """Those of ``step``, or all, or the newest; :class:`NoSuchCopyError` when there is none. In order of their steps."""
    commits = sorted(view.state.commits.values(), key=lambda commit: (commit.step, commit.seq))
    if step is not None:
        commits = [commit for commit in commits if commit.step == step]
    elif not every:
        commits = commits[-1:]
    if not commits:
        raise NoSuchCopyError(
            "the run has no such checkpoint",
            where=f"{view.run} step {step}" if step is not None else view.run,
            do="`seawall copies` lists them",
        )
    return commits
