"""What a record of planes can make a reader do: typed errors, and never more memory than the chunk that it declares."""

import random
import struct
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError, SeawallError
from seawall.vault.casts import cast
from seawall.vault.codecs import Codec
from seawall.vault.derived import DerivedProof, Pair
from seawall.vault.element_runs import ElementRuns
from seawall.vault.header import UnsupportedFormatError
from seawall.vault.plane_header import MAX_DERIVED_RUNS, Kind
from seawall.vault.planes import PlanePacker, unpack_planes
from seawall.vault.zstd_frames import Search, pack_frame
from tests.vault.mutations import mutated
from tests.vault.tensors_in_file import numbers
from tests.vectors.copies import text
from tests.vectors.planes import payload, plane, run

SIZE = 1024
MASTER = numbers(random.Random(5), "float32", 2048, "weights")
AT = len(MASTER)


def earlier(start: int, length: int) -> bytes:
    assert start >= 0 and start + length <= AT, "more is asked for than lies before the record"
    return MASTER[start : start + length]


def unpacked(raw: bytes, size: int = SIZE, *, may_derive: bool = True) -> bytes:
    return bytes(unpack_planes(memoryview(raw), size, AT, may_derive, earlier).chunk)


ZEROS = plane(1, pack_frame(bytes(256)))
GOOD = payload([run(4, SIZE)], [plane(0, bytes(range(256))), ZEROS, ZEROS, ZEROS])


def test_the_control_is_read() -> None:
    assert unpacked(GOOD) == b"".join(struct.pack("<I", number) for number in range(256))
    derived = payload([run(Kind.BFLOAT16, 512, 4096), run(1, 512)], [plane(1, pack_frame(bytes(512)))])
    assert unpacked(derived) == cast(MASTER[4096:5120], Kind.BFLOAT16) + bytes(512)


Z512 = plane(1, pack_frame(bytes(512)))
CORRUPT = {
    "nothing but a form": b"\1",
    "no run": payload([], []),
    "more runs than bytes": payload([run(4, SIZE)], [ZEROS] * 4, count=65535),
    "a run of no bytes": payload([run(1, 0), run(4, SIZE)], [ZEROS] * 4),
    "a run that ends inside an element": payload([run(4, 1023), run(1, 1)], [ZEROS] * 5),
    "runs of less than the chunk": payload([run(4, SIZE - 4)], [plane(1, pack_frame(bytes(255)))] * 4),
    "runs of more than the chunk": payload([run(4, SIZE), run(1, 1)], [ZEROS] * 4 + [plane(0, b"1")]),
    "a run of 4 GiB": payload([run(1, 0xFFFFFFFF)], [ZEROS]),
    "a plane too many": payload([run(4, SIZE)], [ZEROS] * 5),
    "a byte behind the planes": payload([run(4, SIZE)], [ZEROS] * 4, after=b"\0"),
    "a plane cut by a byte": payload([run(4, SIZE)], [ZEROS] * 4)[:-1],
    "a plane of 4 GiB": payload([run(4, SIZE)], [plane(1, b"", 0xFFFFFFFF), ZEROS, ZEROS, ZEROS]),
    "a stored plane that is short": payload([run(4, SIZE)], [plane(0, bytes(255)), ZEROS, ZEROS, ZEROS]),
    "a stored plane that is long": payload([run(4, SIZE)], [plane(0, bytes(257)), ZEROS, ZEROS, ZEROS]),
    "an empty frame": payload([run(4, SIZE)], [plane(1, b""), ZEROS, ZEROS, ZEROS]),
    "no frame": payload([run(4, SIZE)], [plane(1, b"not a frame"), ZEROS, ZEROS, ZEROS]),
    "a frame of more than its plane": payload([run(4, SIZE)], [plane(1, pack_frame(bytes(257))), ZEROS, ZEROS, ZEROS]),
    "a frame of less than its plane": payload([run(4, SIZE)], [plane(1, pack_frame(bytes(255))), ZEROS, ZEROS, ZEROS]),
    "a frame cut by a byte": payload([run(4, SIZE)], [plane(1, pack_frame(bytes(256))[:-1]), ZEROS, ZEROS, ZEROS]),
    "a byte behind a frame": payload([run(4, SIZE)], [plane(1, pack_frame(bytes(256)) + b"\0"), ZEROS, ZEROS, ZEROS]),
    "a frame without a checksum": payload(
        [run(4, SIZE)], [plane(1, zstandard.ZstdCompressor(write_checksum=False).compress(bytes(256))), ZEROS, ZEROS, ZEROS]
    ),
    "no shorter than its chunk": payload([run(1, SIZE)], [plane(0, bytes(SIZE))]),
    "derived from itself": payload([run(1, 512), run(Kind.BFLOAT16, 512, AT)], [Z512]),
    "derived from what comes behind": payload([run(1, 512), run(Kind.BFLOAT16, 512, AT + 4096)], [Z512]),
    "derived from a place near 2^64": payload([run(1, 512), run(Kind.BFLOAT16, 512, 2**64 - 4)], [Z512]),
    "derived, and an odd length": payload([run(1, 513), run(Kind.BFLOAT16, 511, 0)], [plane(1, pack_frame(bytes(513)))]),
    "derived too often": payload(
        [run(Kind.BFLOAT16, 2, 0)] * (MAX_DERIVED_RUNS + 1) + [run(1, 8192 - 2 * MAX_DERIVED_RUNS - 2)],
        [plane(1, pack_frame(bytes(8192 - 2 * MAX_DERIVED_RUNS - 2)))],
    ),
    "derived from what is derived": payload(
        [run(Kind.BFLOAT16, 256, 0), run(1, 512), run(Kind.FLOAT16, 256, AT - 256)], [Z512]
    ),
    "a derived run without its master": payload([run(Kind.BFLOAT16, SIZE)], []),
}  # fmt: skip
UNSUPPORTED = {
    "no byte at all": b"",
    "another form": payload([run(4, SIZE)], [ZEROS] * 4, form=2),
    "another kind of run": payload([run(3, SIZE)], [ZEROS] * 3),
    "a plane too few, so that the first frame reads as an entry": payload([run(4, SIZE)], [ZEROS] * 3),
    "another method": payload([run(4, SIZE)], [plane(2, bytes(256)), ZEROS, ZEROS, ZEROS]),
}


@pytest.mark.parametrize("name", [*CORRUPT, *UNSUPPORTED])
def test_it_is_refused(name: str) -> None:
    raw = CORRUPT[name] if name in CORRUPT else UNSUPPORTED[name]
    with pytest.raises(CorruptError) as caught:
        unpacked(raw, 8192 if name == "derived too often" else SIZE)
    assert isinstance(caught.value, UnsupportedFormatError) == (name in UNSUPPORTED), caught.value


def test_nothing_is_derived_without_the_flag_of_the_header() -> None:
    raw = payload([run(Kind.BFLOAT16, 512, 4096), run(1, 512)], [Z512])
    with pytest.raises(CorruptError, match="may not"):
        unpacked(raw, may_derive=False)


def test_a_small_payload_cannot_ask_for_much() -> None:
    """Each claims a chunk of 8 MiB, or a frame of far more than its plane."""
    size = 8 << 20
    bomb = plane(1, pack_frame(bytes(64 << 20)))
    claims = [
        payload([run(4, size)], [bomb] * 4),
        payload([run(1, size)], [bomb]),
        payload([run(8, size)], [plane(1, b"", size // 16)] * 8),
        payload([run(1, 128)] * 65535, [], count=65535),
    ]
    for raw in claims:
        tracemalloc.start()
        try:
            with pytest.raises(CorruptError):
                unpacked(raw, size)
            # The largest is the array for planes, of the chunk's size, before the first frame is refused.
            assert tracemalloc.get_traced_memory()[1] < size + (32 << 20 if len(raw) > 1 << 18 else 1 << 20)
        finally:
            tracemalloc.stop()


def test_a_frame_that_inflates_to_more_than_it_declares_is_refused() -> None:
    """RFC 8878: one segment, a checksum, a size of 256 bytes, and two hundred blocks of a repeated byte."""
    block = struct.pack("<I", 256 << 3 | 2)[:3] + b"\0"
    frame = b"\x28\xb5\x2f\xfd\x64" + struct.pack("<H", 0) + block * 199 + struct.pack("<I", 256 << 3 | 3)[:3] + b"\0" + bytes(4)
    raw = payload([run(4, 65536)], [plane(1, frame)] + [plane(0, bytes(16384))] * 3)
    with pytest.raises(CorruptError):
        unpacked(raw, 65536)


def mixed() -> bytes:
    """A payload with every kind of run and both methods."""
    chunk = MASTER[:256] + text(200) + cast(MASTER[:512], Kind.BFLOAT16) + text(312)
    runs, proof = ElementRuns([(AT, 256, 4)]), DerivedProof([Pair(Kind.BFLOAT16, AT + 456, 0, 128)], 1024)
    for at in range(0, AT, 1024):
        assert not proof.derived_in(at, memoryview(MASTER)[at : at + 1024])
    packed = PlanePacker(runs, Codec.BALANCED, proof).pack(AT, memoryview(chunk))
    assert packed is not None and bytes((Kind.BFLOAT16,)) in bytes(packed[1:40])
    assert unpacked(bytes(packed[1:])) == chunk
    return bytes(packed[1:])


MIXED = mixed()


def fuzz(raw: bytes, count: int, seed: int, change: Callable[[bytes, random.Random], bytes] = mutated) -> int:
    draw, refused = random.Random(seed), 0
    for _ in range(count):
        try:
            assert len(unpacked(change(raw, draw))) == SIZE
        except SeawallError:
            refused += 1
    return refused


def test_only_typed_errors_come_out() -> None:
    assert fuzz(MIXED, 1500, 1) > 1000
    assert fuzz(GOOD, 500, 2) > 300


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_only_typed_errors_come_out_at_length() -> None:
    for seed in range(40):
        fuzz(MIXED, 5000, seed)
        fuzz(GOOD, 5000, seed)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_of_any_bytes(raw: bytes) -> None:
    for begin in (b"", b"\1", b"\1\0\1", GOOD[:8]):
        try:
            assert len(unpacked(begin + raw)) == SIZE
        except SeawallError:
            continue


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, SIZE - 1), max_size=6, unique=True), st.data())
def test_any_tiling_by_runs_is_read_as_it_says(cuts: list[int], data: st.DataObject) -> None:
    """Runs of any width in any order, made by hand and read back by the rule in the specification."""
    borders = [0, *sorted(cuts), SIZE]
    content = text(SIZE)
    runs, by_width, at = [], {1: b"", 2: b"", 4: b"", 8: b""}, 0
    for begin, end in pairwise(borders):
        width = data.draw(st.sampled_from([width for width in (1, 2, 4, 8) if (end - begin) % width == 0]))
        runs.append(run(width, end - begin))
        by_width[width] += content[at : at + end - begin]
        at = end
    planes = []
    for width in (width for width in by_width if by_width[width]):
        for part in (by_width[width][rank::width] for rank in range(width)):
            frame = pack_frame(part, data.draw(st.sampled_from(list(Search))))
            planes.append(plane(1, frame) if len(frame) < len(part) else plane(0, part))
    raw = payload(runs, planes)
    if len(raw) < SIZE:
        assert unpacked(raw) == content
