"""Reading a source file that training may still be writing: opened beneath the root, checked before and after."""

import os
from types import TracebackType

from seawall.errors import HostileError, SeawallError, SourceChangedError
from seawall.vault import names
from seawall.vault.plan import PlannedFile

_RETRY = "sync again when the save is over"


def identity_of(facts: os.stat_result) -> str:
    """What must stay the same while a file is read; the inode tells a replaced file from a rewritten one."""
    return names.identity_of(facts.st_mtime_ns, facts.st_ino, facts.st_dev)


class OpenSourceFile:
    """One planned file, open for reading."""

    def __init__(self, root: str, planned: PlannedFile) -> None:
        """Raises :class:`SourceChangedError` when it is gone or not what was planned, :class:`HostileError` when a folder became a link."""
        self._planned = planned
        self._descriptor = _open_beneath(root, planned.name)
        try:
            self.check_unchanged()
        except SeawallError:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> "OpenSourceFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._descriptor)

    def read_into(self, buffer: memoryview) -> int:
        """The next bytes; 0 at the end."""
        try:
            return os.readv(self._descriptor, [buffer])
        except OSError as error:
            raise SeawallError("a source file cannot be read", where=self._planned.name, why=error.strerror or "") from error

    def read_at(self, start: int, length: int) -> bytes:
        """What lies there, without moving on; fewer bytes where the file ends."""
        try:
            return os.pread(self._descriptor, length, start)
        except OSError as error:
            raise SeawallError("a source file cannot be read", where=self._planned.name, why=error.strerror or "") from error

    def check_unchanged(self) -> None:
        """Raises :class:`SourceChangedError` unless size, mtime, inode and device are those of the plan."""
        facts = os.fstat(self._descriptor)
        if facts.st_size != self._planned.size or identity_of(facts) != self._planned.identity:
            raise SourceChangedError(
                "a source file changed while it was being sealed",
                where=self._planned.name,
                why="its size, time of change or inode is not that of the plan",
                do=_RETRY,
            )


def _open_beneath(root: str, name: str) -> int:
    """Open ``root/name`` for reading without following a link in any part of ``name``."""
    *folders, last = name.split("/")
    at = None
    try:
        at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        # O_NONBLOCK: a file that became a fifo since it was listed must not hang the worker.
        return os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except FileNotFoundError:
        raise SourceChangedError("a source file is gone", where=name, why="it was there when the sync was planned", do=_RETRY) from None
    except (NotADirectoryError, OSError) as error:
        if isinstance(error, NotADirectoryError) or error.errno == 40:  # ELOOP: a link where a file or folder was
            raise HostileError(
                "a source path became a link", where=name, why="links are not followed", do="find out who changed it"
            ) from None
        raise SeawallError("a source file cannot be opened", where=name, why=error.strerror or "", do="check its permissions") from error
    finally:
        if at is not None:
            os.close(at)
