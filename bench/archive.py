"""What the codecs make of a real checkpoint, in size and CPU time, beside zstd and ZipNN: same bytes, same run.

    python bench/archive.py [--rounds N] [--json FILE]

The checkpoint (real_checkpoint.py) is float32 weights, both Adam moments and the bf16 weights of one step, 303 MiB in two rank files.
Everything is packed in memory by one thread, in records of 8 MiB, and unpacked again; the first round compares every byte. `tar | zstd`
runs as commands on files. Exits 1 when a target is missed. docs/performance.md says how to read the table.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import real_checkpoint
import torch
import zstandard
from process_cost import Cost, cost_of
from ratios import Goal, Measurement, judge, rows_of

from seawall.protect.checkpoint_source import read_source
from seawall.vault.codecs import Codec
from seawall.vault.derived import DerivedProof, Pair, cast_candidates, find_pairs, least_derived_bytes
from seawall.vault.element_runs import ElementRuns, element_runs
from seawall.vault.header import CHUNK_BYTES
from seawall.vault.planes import PlanePacker, unpack_planes

STATE = ("weights", "exp_avg", "exp_avg_sq", "bf16")
RANKS = 2
REFERENCE = "zstd -3"
LARGEST = {"fast": 0.92, "balanced": 0.80}
"""Bytes, to those of the reference."""
LARGEST_TO_ZIPNN = 1.02
GOALS = tuple(Goal(task, tool, REFERENCE, 1 / times) for tool in LARGEST for task, times in (("pack", 1.4), ("unpack", 1.3)))
LEAST_ROUNDS = 5
ONCE = ("zstd -10", "small")
"""Too slow for every round, and without a target."""


@dataclass(frozen=True, slots=True)
class File:
    """A rank's file in memory, and where its tensors lie."""

    raw: memoryview
    runs: ElementRuns
    pairs: tuple[Pair, ...]
    tensors: tuple[tuple[str, int, int], ...]
    """Type, start and length."""

    def read(self, start: int, length: int) -> bytes:
        return bytes(self.raw[start : start + length])


Packed = list[bytes | None]
"""None for a chunk that is stored as it is."""


def files_of(folder: Path) -> list[File]:
    """As a sync sees them."""
    source = read_source(str(folder))
    tensors, sizes = source.tensors(), [file.size for file in source.files]
    ranks = [number for number, file in enumerate(source.files) if file.name.endswith(".pt")]
    runs, candidates = element_runs(tensors, sizes, ranks), cast_candidates(tensors, sizes, ranks)
    found = []
    for number in ranks:
        raw = memoryview((folder / source.files[number].name).read_bytes())
        pairs = find_pairs(candidates[number], lambda at, nbytes, raw=raw: bytes(raw[at : at + nbytes]), least_derived_bytes(CHUNK_BYTES))  # type: ignore[misc]
        spans = tuple((one.dtype, piece.start or 0, piece.nbytes) for one in tensors for piece in one.pieces if piece.file == number)
        found.append(File(raw, runs[number], pairs, spans))
    return found


def chunks(raw: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Where each begins, and its bytes, in a buffer that lies as a sealer's does."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    for at in range(0, len(raw), CHUNK_BYTES):
        chunk = buffer[: min(CHUNK_BYTES, len(raw) - at)]
        chunk[:] = raw[at : at + len(chunk)]
        yield at, chunk


class Planes:
    """A codec of seawall."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def pack(self, file: File) -> tuple[Packed, float]:
        proof = DerivedProof(file.pairs, CHUNK_BYTES) if self._codec.derives else None
        packer = PlanePacker(file.runs, self._codec, proof)
        packed: Packed = []
        used = 0.0
        for at, chunk in chunks(file.raw):
            began = time.process_time()
            found = packer.pack(at, chunk)
            used += time.process_time() - began
            packed.append(None if found is None else bytes(found))
        return packed, used

    def unpack(self, file: File, packed: Packed, compare: bool) -> float:
        used = 0.0
        for number, one in enumerate(packed):
            at = number * CHUNK_BYTES
            wanted = file.raw[at : at + CHUNK_BYTES]
            if one is not None:
                began = time.process_time()
                found = unpack_planes(memoryview(one)[1:], len(wanted), at, True, file.read).chunk
                used += time.process_time() - began
                assert not compare or found == wanted
        return used


class Zstd:
    """The reference library, a frame a record, with checksums."""

    def __init__(self, level: int) -> None:
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True)

    def pack(self, file: File) -> tuple[Packed, float]:
        packed: Packed = []
        used = 0.0
        for _, chunk in chunks(file.raw):
            began = time.process_time()
            packed.append(self._compressor.compress(chunk))
            used += time.process_time() - began
        return packed, used

    def unpack(self, file: File, packed: Packed, compare: bool) -> float:
        began = time.process_time()
        found = [zstandard.ZstdDecompressor().decompress(one or b"") for one in packed]
        used = time.process_time() - began
        assert not compare or b"".join(found) == file.raw
        return used


class ZipNN:
    """Tensor by tensor, as its users call it, told the type of each; it has no checksums."""

    def pack(self, file: File) -> tuple[Packed, float]:
        from zipnn import ZipNN as Coder

        packed: Packed = []
        used = 0.0
        for dtype, start, length in file.tensors:
            coder, content = Coder(bytearray_dtype=dtype, threads=1), bytearray(file.raw[start : start + length])
            began = time.process_time()
            packed.append(bytes(coder.compress(content)))
            used += time.process_time() - began
        return packed, used

    def unpack(self, file: File, packed: Packed, compare: bool) -> float:
        from zipnn import ZipNN as Coder

        used = 0.0
        for (dtype, start, length), one in zip(file.tensors, packed, strict=True):
            coder = Coder(bytearray_dtype=dtype, threads=1)
            began = time.process_time()
            found = coder.decompress(one)
            used += time.process_time() - began
            assert not compare or found == file.raw[start : start + length]
        return used


def tools() -> dict[str, Planes | Zstd | ZipNN]:
    found: dict[str, Planes | Zstd | ZipNN] = {REFERENCE: Zstd(3)}
    found |= {codec.name.lower(): Planes(codec) for codec in Codec if codec.has_planes}
    found["zstd -10"] = Zstd(10)
    try:
        import zipnn  # noqa: F401
    except ImportError:
        print("skipped: zipnn is not installed (`make bench` installs it, with bench/requirements.txt)")
    else:
        found["zipnn"] = ZipNN()
    return found


class Bench:
    """The files, and what was measured."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = tools()
        self.files = files_of(folder / "checkpoint")
        self.total = sum(len(file.raw) for file in self.files)
        self.measurements: list[Measurement] = []
        self.sizes: dict[str, int] = {}

    def round(self, number: int) -> None:
        """Every tool once, in an order that alternates."""
        found = [(name, tool) for name, tool in self.tools.items() if number == 0 or name not in ONCE]
        for name, tool in found if number % 2 == 0 else reversed(found):
            used, back, size = 0.0, 0.0, 0
            for file in self.files:
                packed, seconds = tool.pack(file)
                used += seconds
                back += tool.unpack(file, packed, compare=number == 0)
                plain = [min(CHUNK_BYTES, len(file.raw) - at) for at in range(0, len(file.raw), CHUNK_BYTES)]
                size += sum(plain[place] if one is None else len(one) for place, one in enumerate(packed))
            self.sizes[name] = size
            self._add(number, "pack", name, used)
            self._add(number, "unpack", name, back)
        self._tar(number)

    def _add(self, number: int, task: str, tool: str, seconds: float) -> None:
        self.measurements.append(Measurement(number, task, tool, Cost(seconds, seconds, 0)))

    def _tar(self, number: int) -> None:
        name, archive, back = "tar, zstd -3 -T0", self.folder / "archive.tar.zst", self.folder / "back"
        pack = f"tar -C '{self.folder}/checkpoint' -cf - . | zstd -3 -T0 -q -f -o '{archive}'"
        unpack = f"mkdir '{back}' && zstd -dc '{archive}' | tar -C '{back}' -xf -"
        for task, command in (("pack", pack), ("unpack", unpack)):
            cost, _ = cost_of(["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=os.environ)
            self.measurements.append(Measurement(number, task, name, cost))
        self.sizes[name] = archive.stat().st_size
        shutil.rmtree(back)

    def bf16(self) -> dict[str, float]:
        """Size of the bf16 weights alone, without their master."""
        sizes: dict[str, int] = {}
        total = 0
        for file in self.files:
            start, length = next((start, length) for dtype, start, length in file.tensors if dtype == "bfloat16")
            alone = File(memoryview(bytes(file.raw[start : start + length])), ElementRuns([(0, length, 2)]), (), (("bfloat16", 0, length),))
            total += length
            for name, tool in self.tools.items():
                if name not in ONCE:
                    packed, _ = tool.pack(alone)
                    sizes[name] = sizes.get(name, 0) + sum(len(one or b"") for one in packed)
        return {name: size / total for name, size in sizes.items()}


def report(bench: Bench, alone: dict[str, float]) -> bool:
    """Print tables and verdicts; whether all targets are reached."""
    rows = {(row.task, row.tool): row for row in rows_of(bench.measurements, {"pack": REFERENCE, "unpack": REFERENCE})}
    print(f"\n{bench.total / 2**20:.0f} MiB; GB a CPU second, and how many times that of {REFERENCE}\n")
    print("| codec | size | to zstd -3 | bf16 alone | pack GB/s | times | unpack GB/s | times |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, size in bench.sizes.items():
        pack, unpack = rows["pack", name], rows["unpack", name]
        speeds = [f"{bench.total / row.cpu / 1e9:.2f} | {1 / row.cpu_ratio:.2f}" for row in (pack, unpack)]
        share = f"{alone[name]:.3f}" if name in alone else ""
        print(f"| {name} | {size / bench.total:.3f} | {size / bench.sizes[REFERENCE]:.3f} | {share} | {' | '.join(speeds)} |")
    print()
    reached = True
    for name, most in LARGEST.items():
        ratio = bench.sizes[name] / bench.sizes[REFERENCE]
        reached &= _say(ratio <= most, f"size of {name} to {REFERENCE}: {ratio:.3f}, target at most {most}")
    if "zipnn" in alone:
        ratio = alone["fast"] / alone["zipnn"]
        reached &= _say(ratio <= LARGEST_TO_ZIPNN, f"bf16 of fast to zipnn: {ratio:.3f}, target at most {LARGEST_TO_ZIPNN}")
    for verdict in judge(bench.measurements, GOALS, LEAST_ROUNDS):
        goal = verdict.goal
        words = f"{goal.task} of {goal.tool}: {1 / verdict.measured:.2f} times {goal.reference}, target at least {1 / goal.most:.1f}"
        reached &= _say(verdict.held, f"{words}, {verdict.rounds} rounds")
    return reached


def _say(held: bool, words: str) -> bool:
    print(f"{'reached' if held else 'MISSED '}  {words}")
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="keep every measurement")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seawall-codec-") as scratch:
        folder = Path(scratch)
        parts, loss = real_checkpoint.trained()
        (folder / "checkpoint").mkdir()
        vectors = dict(parts)
        for rank in range(RANKS):
            state = {name: vectors[name].tensor_split(RANKS)[rank].clone() for name in STATE}
            torch.save({"step": real_checkpoint.STEPS, "state": state}, folder / "checkpoint" / f"rank_{rank:05d}.pt")
        (folder / "checkpoint" / "_COMMITTED").write_text(json.dumps({"step": real_checkpoint.STEPS}))
        print(f"{', '.join(STATE)} of {len(vectors['weights'])} parameters after {real_checkpoint.STEPS} steps, loss {loss:.2f}")
        bench = Bench(folder)
        for number in range(asked.rounds):
            bench.round(number)
        reached = report(bench, bench.bf16())
    if asked.json:
        one_by_one = [[one.round, one.task, one.tool, one.cost.cpu] for one in bench.measurements]
        asked.json.write_text(json.dumps({"sizes": bench.sizes, "total": bench.total, "cpu": one_by_one}))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
