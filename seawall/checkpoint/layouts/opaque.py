"""A directory that is only known by its commit mark: whatever is in it counts, once the mark is there."""

from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.look import Look


def inspect_opaque(look: Look) -> None:
    """Complete if the mark is there. Contents are not looked into; links and special files have been judged already."""
    if look.folder.has(look.mark):
        return
    look.found.add(Verdict.INCOMPLETE, f"the commit mark {look.mark} is not there", look.mark)
