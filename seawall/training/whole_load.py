"""A DCP load that reads everything or fails. DCP's own fails for names that the checkpoint lacks, and is silent about names that
nobody asked for (pytorch issues 126881, 148252, 192202): an optimizer whose state is made lazily resumes empty without a word."""

from collections.abc import Sequence

from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner  # noqa: TID253 -- this package is imported by training code, which has torch loaded
from torch.distributed.checkpoint.planner import LoadPlan  # noqa: TID253 -- as above

from seawall.errors import UsageError


class WholeLoadPlanner(DefaultLoadPlanner):
    """Refuses to leave anything of the checkpoint unread but names that begin with one of ``leave``."""

    def __init__(self, leave: Sequence[str] = ()) -> None:
        super().__init__()
        self._leave = tuple(leave)

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        unread = sorted(
            name
            for name in self.metadata.state_dict_metadata
            if name not in self.state_dict and not name.startswith(self._leave or ("\0",))
        )
        if unread:
            raise UsageError(
                "the checkpoint holds what the state does not ask for",
                where=", ".join(unread[:5]) + (f" and {len(unread) - 5} more" if len(unread) > 5 else ""),
                why="whatever is left out starts anew, and training goes on worse without a word",
                do="build the whole state before loading, as torch's get_state_dict(model, optimizer) does, or name it in leave",
            )
        return super().create_local_plan()
