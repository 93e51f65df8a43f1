"""The checkpointer: DCP saves, the mark commits, and what is proved elsewhere is pruned here.

Rank 0 alone makes folders, writes marks and removes steps. A save goes: folder and unfinished mark → every rank's files and the sums of
its tensors, durable → every rank says so → nothing missing, epoch still open → mark. At whatever instant it is killed, the folder either
has no mark or is whole.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from torch.distributed.checkpoint.api import CheckpointException  # noqa: TID253 -- this package is imported by training code, which has torch loaded

from seawall.clock import Clock, SystemClock
from seawall.errors import SeawallError, UsageError
from seawall.training.committed import Committed
from seawall.training.dcp_failure import first_failure
from seawall.training.dcp_write import State, Written, write_in_background, write_now
from seawall.training.epoch import EpochWatch
from seawall.training.heartbeat import Heartbeat
from seawall.training.mark import MARK, MAX_NUMBER, CommitMark, read_mark, sync_folder
from seawall.training.proved import ProvedCopies
from seawall.training.prune import candidates, prune
from seawall.training.ranks import DEFAULT_TIMEOUT, Ranks
from seawall.training.removal import remove_step
from seawall.training.step_names import contradiction
from seawall.training.steps import SavedStep, step_folder, step_states
from seawall.training.writing import finish, lock_folder, make_ready, write_sums

_log = logging.getLogger(__name__)


class Checkpointer:
    """Saves a run's checkpoints into ``<folder>/step_<step>``. Every rank makes one, in the same order, and makes the same calls."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        epoch: int,
        keep: int = 3,
        copies_before_pruning: int = 2,
        proved_copies: ProvedCopies | None = None,
        epoch_watch: EpochWatch | None = None,
        on_commit: Callable[[Committed], None] | None = None,
        heartbeat: Heartbeat | None = None,
        timeout: timedelta = DEFAULT_TIMEOUT,
        clock: Clock | None = None,
    ) -> None:
        """
        ``epoch`` is the epoch of the run's log that this process was started in; marks carry it, and sync refuses those of closed
        epochs. ``keep``: the newest steps that stay on this disk. ``copies_before_pruning``: of how many proved copies
        ``proved_copies`` has to know before an older one goes; without ``proved_copies`` nothing is ever removed.
        ``epoch_watch``: lets a save fail as soon as the log has a newer epoch. ``on_commit`` is called on rank 0 after each commit
        (a :class:`~seawall.training.notifier.Notifier`); what it raises is logged. ``timeout``: how long ranks wait for one that died.

        :class:`UsageError` for numbers that cannot be meant, :class:`BusyError` when another process saves into ``folder``.
        """
        if not 0 <= epoch <= MAX_NUMBER or keep < 1 or copies_before_pruning < 1:
            raise UsageError("epoch is at least 0, keep and copies_before_pruning are at least 1", where=str(folder))
        self.folder = Path(os.path.abspath(folder))
        self.epoch = epoch
        self.ranks = Ranks(timeout)
        self._keep = keep
        self._needed = copies_before_pruning
        self._proved_copies = proved_copies
        self._watch = epoch_watch
        self._on_commit = on_commit
        self._heartbeat = heartbeat
        self._clock = clock or SystemClock()
        self._lock_descriptor = -1
        self._being_written: set[int] = set()
        self._pending: Future[Committed] | None = None
        self._background = ThreadPoolExecutor(1, thread_name_prefix="seawall-save")
        self._removing = threading.Lock()
        self._one_pruning = threading.Lock()
        self._prune_now = threading.Event()
        self._closed = False
        self.ranks.first_does(self._take_lock)
        if self.ranks.first and proved_copies is not None:
            threading.Thread(target=self._keep_pruning, name="seawall-prune", daemon=True).start()

    def save(self, step: int, state: State, *, loss: float | None = None, gradient_norm: float | None = None) -> Committed:
        """Save and commit; returns when the mark is durable.

        Waits first for a save that is under way, and raises what that one raised. :class:`EpochClosedError` when the epoch is closed: then
        training is to stop. :class:`SeawallError` when the save failed on any rank; every rank raises it, and what was
        written is removed. ``loss`` and ``gradient_norm`` go into the mark, exactly.
        """
        self.wait()
        with self._heartbeat.phase("saving") if self._heartbeat else nullcontext():
            path = self._begin(step, state)
            return self._end(lambda: write_now(path, state, self.ranks.group), path, step, loss, gradient_norm)

    def save_async(self, step: int, state: State, *, loss: float | None = None, gradient_norm: float | None = None) -> None:
        """Copy the state, and save and commit it in the background; training may change its tensors when this returns.

        One save is under way at a time, so this waits for the one before, and raises what that raised. The copy takes as much memory
        as the state (of this rank). :meth:`wait` or the next save tell how it went.
        """
        self.wait()
        with self._heartbeat.phase("saving") if self._heartbeat else nullcontext():
            path = self._begin(step, state)
            try:
                written = write_in_background(path, state, self.ranks.group)
            except BaseException:
                self._being_written.discard(step)
                raise
        self._pending = self._background.submit(self._end, written, path, step, loss, gradient_norm)

    def wait(self) -> Committed | None:
        """Wait for the save that is under way, if one is; its outcome, or what it raised."""
        pending, self._pending = self._pending, None
        return None if pending is None else pending.result()

    def prune(self) -> list[int]:
        """Remove what may go now, and give the steps. Rank 0's background thread does this after each commit.

        Raises what ``proved_copies`` raises; then nothing was removed.
        """
        if self._proved_copies is None or not self.ranks.first:
            return []
        with self._one_pruning:
            states = step_states(self.folder)
            complete = {state.step for state in states if state.complete}
            marks: dict[int, CommitMark] = {}
            proved: dict[int, int] = {}
            for step in candidates(states, self._keep, self._being_written):
                if step in complete:
                    path = step_folder(self.folder, step)
                    try:
                        marks[step] = read_mark(path)
                    except SeawallError:
                        # Another trainer's mark, which says less than ours: it is not known which copies are of this checkpoint.
                        continue
                    proved[step] = self._proved_copies(SavedStep(step, marks[step].epoch, path))
            chosen = prune(states, proved, self._keep, self._needed, self._being_written)
            removed = [step for step in chosen if self._remove(step, marks.get(step))]
        if removed:
            _log.info("removed steps %s: each has %d proved copies elsewhere, or was abandoned", removed, self._needed)
        return removed

    def close(self) -> None:
        """Wait for the save that is under way, and give the folder free. Raises what that save raised."""
        try:
            self.wait()
        finally:
            self._closed = True
            self._prune_now.set()
            self._background.shutdown()
            if self._lock_descriptor >= 0:
                # A removal under way ends first: the next trainer may save one of its steps.
                with self._removing:
                    os.close(self._lock_descriptor)
                    self._lock_descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
            return
        try:
            self.close()
        except SeawallError as second:
            _log.warning("the save that was under way failed, too: %s", second)

    def _remove(self, step: int, mark: CommitMark | None) -> bool:
        """Remove one step, unless it is another one by now: proofs take a while to read, and it may be saved again meanwhile."""
        path = step_folder(self.folder, step)
        with self._removing:
            if self._closed or step in self._being_written:
                return False
            same = read_mark(path) == mark if mark is not None else not (path / MARK).exists()
            return same and remove_step(path)

    def _take_lock(self) -> None:
        self._lock_descriptor = lock_folder(self.folder)

    def _begin(self, step: int, state: State) -> Path:
        if not 0 <= step <= MAX_NUMBER:
            raise UsageError("a step is a number from 0 on", where=str(step))
        said = contradiction(state, step)
        if said:
            raise UsageError(
                f"the state says that it is of another step than {step}", where=said, do="save it under the step that it names"
            )

        def ready() -> None:
            if self._watch is not None:
                # What is read while the ranks write is there when the mark is due.
                self._watch.refresh()
                self._watch.check(self.epoch, str(self.folder))
            self._being_written.add(step)
            with self._removing:
                make_ready(self.folder, step)

        try:
            self.ranks.first_does(ready)
        except BaseException:
            self._being_written.discard(step)
            raise
        return step_folder(self.folder, step)

    def _end(self, write: Callable[[], Written], path: Path, step: int, loss: float | None, gradient_norm: float | None) -> Committed:
        failure, metadata, sums = None, None, b""
        try:
            written = write()
            metadata = written.metadata
            sums = write_sums(path, self.ranks.rank, written.sums)
            sync_folder(path)
        except CheckpointException as error:
            rank, cause = first_failure(error)
            failure = (rank, f"{type(cause).__name__}: {cause}")
        except Exception as error:  # noqa: BLE001 -- whatever a rank's disk did, all ranks raise one error
            failure = (self.ranks.rank, f"{type(error).__name__}: {error}")
        answers = self.ranks.gather((failure, sums))
        failures = [failed for failed, _ in answers]

        def commit() -> Committed:
            if self._watch is not None:
                self._watch.check(self.epoch, str(path))
            assert metadata is not None
            texts = [None if number is None else repr(float(number)) for number in (loss, gradient_norm)]
            return finish(
                path,
                metadata,
                step=step,
                epoch=self.epoch,
                sums=[digest for _, digest in answers],
                loss=texts[0],
                gradient_norm=texts[1],
                clock=self._clock,
            )

        def give_up() -> Committed:
            # All ranks have answered, so nobody writes there any more; on a full disk the next save needs the room.
            remove_step(path)
            rank, why = next(failed for failed in failures if failed is not None)
            raise SeawallError("the checkpoint was not saved", where=f"{path} rank {rank}", why=why[:2000])

        try:
            committed = self.ranks.first_does(give_up if any(failures) else commit)
        finally:
            self._being_written.discard(step)
        self._after(committed)
        return committed

    def _after(self, committed: Committed) -> None:
        if self.ranks.first:
            self._prune_now.set()
            if self._on_commit is not None:
                try:
                    self._on_commit(committed)
                except Exception:  # noqa: BLE001 -- the boundary to somebody else's code; the checkpoint is committed whatever it does
                    _log.exception("the checkpoint of step %d is committed; telling others failed", committed.step)

    def _keep_pruning(self) -> None:
        while True:
            self._prune_now.wait()
            self._prune_now.clear()
            if self._closed:
                return
            try:
                self.prune()
            except Exception as error:  # noqa: BLE001 -- the boundary to training, whose old steps then stay until next time
                _log.warning("nothing was pruned: %s", error)
