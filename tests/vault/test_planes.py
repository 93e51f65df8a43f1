"""Byte planes give every byte back, whatever the tensors are and wherever records cut them."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seawall.kernels.kernel_device import KernelDevice
from seawall.vault.codecs import Codec
from seawall.vault.derived import DerivedProof, Pair, find_pairs, least_derived_bytes
from seawall.vault.element_runs import LEAST_RUN_BYTES, ElementRuns, element_runs
from seawall.vault.header import DERIVED_FLAG
from seawall.vault.open import Opener, open_bytes
from seawall.vault.plane_header import MAX_DERIVED_RUNS, MAX_RUNS, Kind, Run
from seawall.vault.planes import PlanePacker, unpack_planes
from seawall.vault.tensors import TensorPiece, TensorRecord
from tests.kernels.simulator.build import compiler
from tests.kernels.simulator.engine import SimulatedEngine
from tests.vault.sealed import CHUNK_BYTES, DATA_KEY, frame_of, range_of, resolve, sealed
from tests.vault.tensors_in_file import DTYPES, TensorFile, numbers, tensor_files
from tests.vectors.copies import noise, text

PLANES = st.sampled_from([codec for codec in Codec if codec.has_planes])


def refuse(start: int, length: int) -> bytes:
    raise AssertionError(f"bytes {start} to {start + length} are asked for, and nothing is derived")


def sealed_file(file: TensorFile, codec: Codec) -> bytes:
    return sealed(file.plaintext, codec, runs=file.runs, pairs=file.pairs)[0]


@settings(max_examples=150, deadline=None)
@given(tensor_files(), PLANES)
@example(TensorFile(), Codec.SMALL)
def test_any_mix_of_tensors_comes_back(file: TensorFile, codec: Codec) -> None:
    raw = sealed_file(file, codec)
    opened, opener = open_bytes(raw, DATA_KEY, resolve, "object")
    assert opened == file.plaintext
    assert len(raw) <= len(sealed(file.plaintext)[0]), "no record is longer than the chunk itself"
    assert bool(opener.frame.header.flags & DERIVED_FLAG) == (codec.derives and bool(file.pairs))


@settings(max_examples=100, deadline=None)
@given(tensor_files(), PLANES, st.integers(0, 9000), st.integers(0, 4000))
def test_any_range_of_it_too(file: TensorFile, codec: Codec, start: int, length: int) -> None:
    assert range_of(sealed_file(file, codec), start, length) == file.plaintext[start : start + length]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [0, 1, 2, 3, 5, 64])
@pytest.mark.parametrize("codec", [Codec.FAST, Codec.SMALL])
def test_each_type_shrinks_at_any_alignment(dtype: str, lead: int, codec: Codec) -> None:
    file = TensorFile(bytearray(noise("lead", lead)))
    file.add(dtype, numbers(random.Random(7), dtype, 4000, "weights"))
    raw = sealed_file(file, codec)
    assert open_bytes(raw, DATA_KEY, resolve, "object")[0] == file.plaintext
    # Only the top byte is less than noise; five values of it need 2.3 bits.
    expected = len(file.plaintext) * (1 - 0.5 / DTYPES[dtype])
    assert len(raw) < expected + 200 * len(frame_of(raw).leaves)


def test_nan_payloads_and_signed_zeros_are_bytes_like_others() -> None:
    patterns = numpy.array([0x7FC00001, 0xFFFFFFFF, 0x7F800001, 0x80000000, 0, 0x7F800000, 0xFF812345], "<u4")
    file = TensorFile()
    file.add("float32", numpy.resize(patterns, 3000).tobytes())
    for codec in (Codec.FAST, Codec.BALANCED):
        assert open_bytes(sealed_file(file, codec), DATA_KEY, resolve, "object")[0] == file.plaintext


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("content", [b"", b"1", b"12"])
def test_the_smallest_files(codec: Codec, content: bytes) -> None:
    raw, _, _ = sealed(content, codec)
    assert open_bytes(raw, DATA_KEY, resolve, "object")[0] == content


def test_noise_and_what_is_compressed_already_are_stored_as_they_are() -> None:
    packer = PlanePacker(ElementRuns([(0, 1 << 20, 4)]), Codec.SMALL)
    assert packer.pack(0, memoryview(noise("noise", 1 << 20))) is None


def test_a_large_plane_is_judged_by_places_all_over_it() -> None:
    """A sample of the beginning alone would store it."""
    size = 8 << 20
    chunk = memoryview(noise("begin", 1 << 20) + bytes(size - (1 << 20)))
    packed = PlanePacker(ElementRuns(), Codec.FAST).pack(0, chunk)
    assert packed is not None and len(packed) < 1 << 21
    assert unpack_planes(packed[1:], size, 0, False, refuse).chunk == chunk


def test_threads_pack_at_once_what_one_packs() -> None:
    """Compressors belong to their thread: one that is shared crashes the interpreter."""
    chunk = memoryview(numbers(random.Random(4), "float32", 50_000, "weights") + text(100_000))
    runs = ElementRuns([(0, 200_000, 4)])

    def pack(_: int) -> bytes:
        packed = PlanePacker(runs, Codec.SMALL).pack(0, chunk)
        assert packed is not None and unpack_planes(packed[1:], len(chunk), 0, False, refuse).chunk == chunk
        return bytes(packed)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(pack, range(24)))) == 1


def test_a_gpus_planes_are_packed_to_the_same_bytes(tmp_path: Path) -> None:
    """The kernel's text, run by the simulator."""
    if compiler() is None:
        pytest.skip("no g++ on this machine: the kernels are not run in the simulator")
    chunk = memoryview(numbers(random.Random(3), "float32", 1500, "weights") + noise("odd", 7))
    runs = ElementRuns([(0, 6000, 4)])
    packed = [PlanePacker(runs, Codec.FAST, device=device).pack(0, chunk) for device in (None, KernelDevice(SimulatedEngine(tmp_path)))]
    assert packed[0] is not None and packed[0] == packed[1]


# --- which bytes are elements ---


def lengths(runs: list[Run]) -> list[tuple[int, int]]:
    return [(int(run.kind), run.length) for run in runs]


def test_a_border_cuts_elements_into_bytes() -> None:
    runs = ElementRuns([(1000, 4000, 4)])
    assert lengths(runs.cut(0, 1024)) == [(1, 1024)], "24 bytes are no run"
    assert lengths(runs.cut(1024, 1024)) == [(4, 1024)]
    odd = ElementRuns([(1022, 4000, 4)])
    assert lengths(odd.cut(0, 1024)) == [(1, 1024)]
    assert lengths(odd.cut(1024, 1024)) == [(1, 2), (4, 1020), (1, 2)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3000), st.sampled_from((2, 4, 8))), max_size=12),
    st.integers(0, 4000),
    st.integers(1, 2000),
)
def test_runs_fill_a_chunk_and_keep_to_their_elements(elements: list[tuple[int, int, int]], at: int, length: int) -> None:
    runs = ElementRuns(elements).cut(at, length)
    assert sum(run.length for run in runs) == length
    here = at
    for run in runs:
        if run.width > 1:
            assert run.length % run.width == 0 and run.length >= LEAST_RUN_BYTES
            assert any(
                width == run.width and start <= here and here + run.length <= start + nbytes + 3000 and (here - start) % width == 0
                for start, nbytes, width in elements
            )
        here += run.length


def test_overlapping_views_count_once() -> None:
    views = [TensorRecord("t", dtype, (), (TensorPiece(0, nbytes, start, (), ()),)) for dtype, start, nbytes in (
        ("float32", 0, 4000), ("bfloat16", 0, 4000), ("float32", 400, 400), ("bfloat16", 4000, 200), ("int64", 0, 5000),
    )]  # fmt: skip
    assert lengths(element_runs(views, [4200], [0])[0].cut(0, 4200))[-1] == (2, 200), "one that reaches beyond the file does not count"


def test_tiny_tensors_without_end_are_taken_together() -> None:
    runs = ElementRuns([(at, 128, 2) for at in range(0, 1 << 24, 130)])
    cut = runs.cut(0, 1 << 24)
    assert len(cut) <= MAX_RUNS and sum(run.length for run in cut) == 1 << 24


# --- derived weights ---


def model(count: int = 3000, lead: int = 0, gap: int = 0, kind: Kind = Kind.BFLOAT16) -> TensorFile:
    from seawall.vault.casts import cast

    file = TensorFile(bytearray(noise("lead", lead)))
    master = numbers(random.Random(1), "float32", count, "weights")
    file.add("float32", master)
    file.add("float32", numbers(random.Random(2), "float32", count, "weights"))
    file.content += noise("gap", gap)
    file.add("bfloat16" if kind == Kind.BFLOAT16 else "float16", cast(master, kind))
    return file


@pytest.mark.parametrize("kind", [Kind.BFLOAT16, Kind.FLOAT16])
@pytest.mark.parametrize("lead", [0, 1, 3, 64])
@pytest.mark.parametrize("gap", [0, 1, 2])
def test_weights_of_a_master_before_them_cost_next_to_nothing(kind: Kind, lead: int, gap: int) -> None:
    file = model(lead=lead, gap=gap, kind=kind)
    assert len(file.pairs) == 1
    derived, stored = sealed_file(file, Codec.BALANCED), sealed_file(file, Codec.FAST)
    assert len(derived) < len(stored) - 3000 * 2 * 0.6
    assert open_bytes(derived, DATA_KEY, resolve, "object")[0] == file.plaintext
    for start in range(0, len(file.plaintext), 911):
        assert range_of(derived, start, 500) == file.plaintext[start : start + 500]


def test_a_small_file_derives_within_one_record() -> None:
    file = model(count=100)
    assert len(file.plaintext) < CHUNK_BYTES and len(file.pairs) == 1
    raw = sealed_file(file, Codec.BALANCED)
    assert open_bytes(raw, DATA_KEY, resolve, "object")[0] == file.plaintext
    assert len(raw) < len(sealed_file(file, Codec.FAST)) - 100


def test_one_other_bit_costs_its_record_only() -> None:
    file = model(count=4096)
    place = len(file.content) - 3000
    file.content[place] ^= 1
    proof = DerivedProof(file.pairs, CHUNK_BYTES)
    derived = {}
    for at in range(0, len(file.plaintext), CHUNK_BYTES):
        derived[at // CHUNK_BYTES] = proof.derived_in(at, memoryview(file.plaintext)[at : at + CHUNK_BYTES])
    weights = range(8 * 4096 // CHUNK_BYTES, 10 * 4096 // CHUNK_BYTES)
    assert [number for number, runs in derived.items() if runs] == [number for number in weights if number != place // CHUNK_BYTES]
    assert open_bytes(sealed_file(file, Codec.BALANCED), DATA_KEY, resolve, "object")[0] == file.plaintext


def test_a_master_behind_its_weights_is_none() -> None:
    file, other = model(), TensorFile()
    for tensor in reversed(file.tensors):
        start, nbytes = tensor.pieces[0].start or 0, tensor.pieces[0].nbytes
        other.add(tensor.dtype, bytes(file.content[start : start + nbytes]))
    assert other.pairs == ()


def test_a_source_that_changes_after_it_was_sampled_is_only_not_derived() -> None:
    file = model()
    pairs = file.pairs
    for at in range(0, 12000, 400):
        file.content[at] ^= 0x80
        file.content[at + 3] ^= 0x01
    raw, _, _ = sealed(file.plaintext, Codec.BALANCED, runs=file.runs, pairs=pairs)
    assert open_bytes(raw, DATA_KEY, resolve, "object")[0] == file.plaintext


def test_weights_that_are_their_own_master_are_not_derived_from_themselves() -> None:
    """Views of one storage as float32 and as bfloat16: zeros are the cast of zeros."""
    file = TensorFile(bytearray(40_000))
    views = (("float32", 0, 20_000), ("bfloat16", 10_000, 10_000), ("float32", 10_000, 10_000), ("bfloat16", 30_000, 5000))
    file.tensors = [TensorRecord("t", dtype, (), (TensorPiece(0, nbytes, start, (), ()),)) for dtype, start, nbytes in views]
    for one in file.pairs:
        assert all(other.weights_end <= one.master or one.master_end <= other.weights for other in file.pairs)
    assert open_bytes(sealed_file(file, Codec.BALANCED), DATA_KEY, resolve, "object")[0] == file.plaintext


def test_no_more_runs_are_derived_than_a_record_may_have() -> None:
    file = TensorFile()
    masters = [numbers(random.Random(seed), "float32", 4, "weights") for seed in range(300)]
    for raw in masters:
        file.add("float32", raw)
    from seawall.vault.casts import cast

    for raw in masters:
        file.add("bfloat16", cast(raw, Kind.BFLOAT16))
    proof = DerivedProof(file.pairs, CHUNK_BYTES)
    found = [proof.derived_in(at, memoryview(file.plaintext)[at : at + CHUNK_BYTES]) for at in range(0, len(file.plaintext), CHUNK_BYTES)]
    assert 100 < max(map(len, found)) <= MAX_DERIVED_RUNS
    assert open_bytes(sealed_file(file, Codec.BALANCED), DATA_KEY, resolve, "object")[0] == file.plaintext


def test_a_range_of_derived_weights_reads_the_masters_records_once_each() -> None:
    file = model(count=8192)
    raw = sealed_file(file, Codec.BALANCED)
    opener = Opener(frame_of(raw), DATA_KEY)
    read: list[int] = []

    def read_into(at: int, buffer: memoryview) -> int:
        read.append(opener.frame.offsets.index(at))
        buffer[:] = raw[at : at + len(buffer)]
        return len(buffer)

    start = 8 * 8192 + 100
    assert b"".join(opener.read_range(start, 50, read_into)) == file.plaintext[start : start + 50]
    # The record of the weights, and the two that hold the elements of its master.
    assert read == [start // CHUNK_BYTES, 0, 1]


def test_pairs_are_found_among_many_tensors_of_one_shape() -> None:
    file = TensorFile()
    masters = [numbers(random.Random(seed), "float32", 64, "weights") for seed in range(40)]
    starts = [file.add("float32", raw) for raw in masters]
    from seawall.vault.casts import cast

    order = random.Random(3).sample(range(40), 40)
    weights = [file.add("bfloat16", cast(masters[number], Kind.BFLOAT16)) for number in order]
    assert file.pairs == tuple(Pair(Kind.BFLOAT16, at, starts[number], 64) for at, number in zip(weights, order, strict=True))
    assert find_pairs(file.candidates, lambda at, n: b"", 8) == tuple(Pair(Kind.BFLOAT16, at, starts[-1], 64) for at in weights), (
        "samples that cannot be read prove nothing; the digests do"
    )


def test_less_than_the_least_is_not_worth_a_request() -> None:
    assert least_derived_bytes(8 << 20) == 64 << 10
