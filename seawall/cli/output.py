"""What a person sees, and what a program reads: results on standard output, progress and errors on standard error."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from seawall.errors import SeawallError

if TYPE_CHECKING:
    from rich.console import Console


def console(stderr: bool = False) -> "Console":
    """A Rich console; plain when the stream is no terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def emit(document: dict[str, Any]) -> None:
    """The one JSON object of ``--json``. Undecodable file names stay readable as escapes."""
    sys.stdout.write(json.dumps(document, ensure_ascii=True, indent=1) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A line for a person."""
    _write(sys.stdout, text)


def warn(text: str) -> None:
    """A line that a person should see even when standard output goes elsewhere."""
    _write(sys.stderr, "warning: " + text)


def printable(text: str) -> str:
    """The text with everything escaped that is not seen as itself: names of files and tensors are strangers', and a terminal
    obeys what a control character in one says (CWE-150). A line break in a name would make it two lines, one of them forged."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text)


def _write(stream: TextIO, line: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(printable(line).encode(encoding, "backslashreplace").decode(encoding) + "\n")


def report_error(error: SeawallError, as_json: bool, exit_code: int | None = None) -> None:
    """What went wrong, where, why, and what to do next. ``exit_code`` where it is not that of the error's class."""
    if as_json:
        emit({**error.as_json(), "exit_code": error.exit_code if exit_code is None else exit_code})
        return
    _write(sys.stderr, f"seawall: {error.what}")
    for label, text in (("where", error.where), ("why", error.why), ("next", error.do)):
        if text:
            _write(sys.stderr, f"  {label}: {text}")


def human_bytes(nbytes: int) -> str:
    """``1.5 GiB``: binary units, three digits."""
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{nbytes} B" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1024
    raise AssertionError


class TransferProgress:
    """A bar with rate and time left on a terminal; nothing elsewhere. Call it from any thread."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._lock = threading.Lock()
        self.bytes_done = 0
        self.files_done = 0

    @contextmanager
    def phase(self, name: str, total_bytes: int) -> Iterator[None]:
        """Show one phase while the block runs."""
        if not self._shown or not sys.stderr.isatty():
            yield
            return
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console(stderr=True), transient=True) as bar:
            task = bar.add_task(name, total=total_bytes or None)
            self._advance = lambda nbytes: bar.advance(task, nbytes)
            try:
                yield
            finally:
                del self._advance

    def __call__(self, nbytes: int, files: int) -> None:
        with self._lock:
            self.bytes_done += nbytes
            self.files_done += files
        advance = getattr(self, "_advance", None)
        if advance is not None:
            advance(nbytes)


class ItemProgress:
    """A count of things done with the time left, on a terminal; nothing elsewhere."""

    def __init__(self, shown: bool, name: str, total: int) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._name = name
        self._total = total
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "ItemProgress":
        if self._shown:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._name, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One more is done."""
        if self._bar is not None:
            self._bar.advance(self._task)
