"""Sync, verify and restore one large file in this process, and report how much memory that took. Used by test_memory.py.

    python -m tests.protect.memory_driver FOLDER MIB [CODEC]

With a codec of byte planes the file is safetensors: a float32 master copy and its bfloat16 cast, which codecs may derive. Prints one
JSON object: peak resident bytes after each verb, and before the first.
"""

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from seawall.protect.restore import restore
from seawall.stores.base import Store
from seawall.stores.wrapper import Result, Wrapper
from seawall.vault.casts import cast
from seawall.vault.codecs import Codec, codec_named
from seawall.vault.plane_header import Kind
from seawall.verify.check import OK, Unlocked, check_copy
from seawall.verify.levels import Level
from tests.protect.little_site import RUN, LittleSite, file_site, write_checkpoint

MIB = 1 << 20
TRANSFERS = 16
CROWD = {"part": 8, "read_into": 2}
"""Transfers of one file that hold a full buffer each at one moment: as many as the bound on buffers and the read-ahead let through."""


class Crowd(Wrapper):
    """Lets no transfer go on before so many of them are on their way, each with a full buffer: the moment that takes the most memory."""

    def __init__(self, inner: Store, method: str) -> None:
        super().__init__(inner)
        self._method = method
        self._barrier = threading.Barrier(CROWD[method], timeout=20)
        self._places = itertools.count()

    def around(self, method: str, key: str, action: Callable[[], Result]) -> Result:
        if method == self._method and next(self._places) < CROWD[method]:
            result = action()
            self._barrier.wait()
            return result
        return action()


def peak_bytes() -> int:
    """Not ``getrusage``: that begins with the peak of whoever started this process (Linux, exec: setmax_mm_hiwater_rss)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def write_large(path: Path, nbytes: int) -> None:
    """A megabyte of random bytes in every four; the rest are holes, which are read as zeros and sealed like anything else."""
    with path.open("wb") as file:
        for at in range(0, nbytes, 4 * MIB):
            file.seek(at)
            file.write(os.urandom(MIB))
        file.truncate(nbytes)


def write_tensors(path: Path, nbytes: int) -> None:
    """About as many bytes as that, two thirds of them a master, whose upper bytes alone shrink."""
    elements = nbytes // 6 // MIB * MIB
    entries = {"master": ("F32", 0, 4 * elements), "weights": ("BF16", 4 * elements, 6 * elements)}
    header = {name: {"dtype": dtype, "shape": [elements], "data_offsets": [begin, end]} for name, (dtype, begin, end) in entries.items()}
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    data = 8 + len(raw)
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        for at in range(0, 4 * elements, 4 * MIB):
            master = bytearray(os.urandom(4 * MIB))
            master[3::4] = os.urandom(1024) * (MIB // 1024)
            file.seek(data + at)
            file.write(master)
            file.seek(data + 4 * elements + at // 2)
            file.write(cast(master, Kind.BFLOAT16))
        file.truncate(data + 6 * elements)


def levels(site: LittleSite, store: str, sealing: str) -> list[Level]:
    """The levels of a copy that hold, up to L3."""
    state = site.view().state
    commit = state.commit_of(sealing)

    def open_up(_: object) -> Unlocked:
        _, inventory, data_key = site.opened(store, sealing)
        return Unlocked(data_key, inventory)

    findings = check_copy(
        site.stores[store],
        RUN,
        bytes.fromhex(sealing),
        commit.manifest,
        state.writer_of(commit),
        state.resolver("operator"),
        Level.L3,
        unlock=open_up,
        transfers=TRANSFERS,
    )
    return [finding.level for finding in findings if finding.result == OK]


def same(one: Path, other: Path) -> bool:
    """Whether two files are equal, compared in little steps."""
    with one.open("rb") as first, other.open("rb") as second:
        while block := first.read(MIB):
            if block != second.read(MIB):
                return False
        return not second.read(1)


def main(folder: Path, nbytes: int, codec: Codec) -> None:
    source = write_checkpoint(folder / "ck", files={"small": b"1"})
    name = "large.safetensors" if codec.has_planes else "large"
    (write_tensors if codec.has_planes else write_large)(source / name, nbytes)
    site = file_site(folder)
    fast = site.stores["a"]
    peaks = {"before": peak_bytes()}
    site.stores["a"] = Crowd(fast, "part")
    done = site.sync(source, places=("a",), transfers=TRANSFERS, codec=codec)
    site.stores["a"] = fast
    peaks["sync"] = peak_bytes()
    assert levels(site, "a", done.sealing)[-1] == Level.L3
    peaks["verify"] = peak_bytes()
    site.stores["a"] = Crowd(fast, "read_into")
    restore(*site.opened("a", done.sealing), folder / "out", transfers=TRANSFERS)
    peaks["restore"] = peak_bytes()
    assert same(source / name, folder / "out" / name)
    print(json.dumps(peaks))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) * MIB, codec_named(sys.argv[3] if len(sys.argv) > 3 else "none"))
