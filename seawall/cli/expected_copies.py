"""Which stores should have a copy of a checkpoint: all of a run's, but the archive only of what was archived."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord


def expected_copies(site: "Site", view: "LogView") -> "Callable[[CommitRecord, str], bool]":
    """Tells of a commit and a store's name whether a copy should be there. The archive's labels are listed once, if it has an archive."""
    archive = site.run(view.run).archive
    steps: frozenset[int] = frozenset()
    if archive:
        # Imported here, because it brings much that most commands have no use for.
        from seawall.protect.archive import archived_steps

        steps = archived_steps(site.coordination.store, view.run)

    def expected(commit: "CommitRecord", name: str) -> bool:
        return name != archive or commit.step in steps

    return expected
