"""What torch files of both containers have in common: judging their pickle, and bounding each tensor by its storage."""

from collections.abc import Iterator
from contextlib import contextmanager

from seawall.checkpoint.content import Content, whole
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.pickles.judge import judge_broken, judge_pickle
from seawall.checkpoint.pickles.stack import Pickle
from seawall.checkpoint.views import View, views_in
from seawall.errors import CorruptError, HostileError


@contextmanager
def noting(content: Content, record: str = "") -> Iterator[None]:
    """What is wrong as a trouble of the content, so that it does not hide what was found before: a loader may have run that by then."""
    try:
        yield
    except HostileError as error:
        content.add(Verdict.HOSTILE, _text(error), record)
    except CorruptError as error:
        content.add(Verdict.CORRUPT, _text(error), record)
        for finding in judge_broken(error):
            content.add(finding.verdict, finding.text, record)


def _text(error: CorruptError | HostileError) -> str:
    return f"{error.what}: {error.why}" if error.why else error.what


def judge(content: Content, pickle: Pickle, record: str = "") -> None:
    """Add what loading this pickle would do."""
    for finding in judge_pickle(pickle):
        content.add(finding.verdict, finding.text, record if finding.verdict is Verdict.HOSTILE else "")


def views_of(content: Content, pickle: Pickle, where: str) -> list[View]:
    """The pickle's tensors, with a word about a walk that stopped early."""
    found, stopped = views_in(pickle.top, where)
    if stopped:
        content.add(Verdict.WARN, "there is too much in this pickle to list all of its tensors")
    return found


def place(content: Content, view: View, file: str, start: int | None, available: int, record: str) -> None:
    """Add the tensor, or say why its storage cannot hold it.

    ``start`` is where the storage's bytes begin in ``file`` (None if they are not stored as they are), ``available`` how many there are.
    """
    if view.reach * view.width > available:
        content.add(
            Verdict.CORRUPT,
            f"tensor {view.name} needs {view.reach * view.width} bytes of {record}, which has {available}",
            view.name or record,
        )
    at = start + view.offset * view.width if start is not None and view.contiguous else None
    content.tensors.append(whole(view.name, view.dtype, view.shape, file, at, view.elements * view.width))
