"""One exit code for several problems."""

from collections.abc import Iterable

from seawall.errors import SeawallError

_WORST_FIRST = (10, 5, 4, 8, 7, 6, 11, 9, 3, 2, 1)
"""An incident of trust outweighs everything; damage outweighs what is only missing; what may pass by itself comes late."""


def worst_code(problems: Iterable[SeawallError | int]) -> int:
    """The exit code of the worst; 0 when there is none."""
    codes = {problem if isinstance(problem, int) else problem.exit_code for problem in problems} - {0}
    return min(codes, key=_WORST_FIRST.index, default=0)
