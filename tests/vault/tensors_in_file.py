"""Files as hypothesis draws them: tensors of every width, gaps between them, and weights that are casts of master copies before them."""

import random
from dataclasses import dataclass, field

from hypothesis import strategies as st

from seawall.vault.casts import cast
from seawall.vault.derived import CastCandidates, Pair, cast_candidates, find_pairs, least_derived_bytes
from seawall.vault.element_runs import ElementRuns, element_runs
from seawall.vault.plane_header import Kind
from seawall.vault.tensors import TensorPiece, TensorRecord
from tests.vault.sealed import CHUNK_BYTES

DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "float8_e5m2": 1, "complex64": 4, "bool": 1}
KINDS = {"bfloat16": Kind.BFLOAT16, "float16": Kind.FLOAT16}


@dataclass
class TensorFile:
    """A file's bytes, and what an inspection would say of it."""

    content: bytearray = field(default_factory=bytearray)
    tensors: list[TensorRecord] = field(default_factory=list)

    def add(self, dtype: str, raw: bytes) -> int:
        """Append a tensor's bytes; where they begin."""
        start = len(self.content)
        self.content += raw
        self.tensors.append(TensorRecord(f"t{start}", dtype, (), (TensorPiece(0, len(raw), start, (), ()),)))
        return start

    @property
    def plaintext(self) -> bytes:
        return bytes(self.content)

    @property
    def runs(self) -> ElementRuns:
        return element_runs(self.tensors, [len(self.content)], [0])[0]

    @property
    def candidates(self) -> CastCandidates:
        return cast_candidates(self.tensors, [len(self.content)], [0])[0]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return find_pairs(self.candidates, lambda at, n: bytes(self.content[at : at + n]), least_derived_bytes(CHUNK_BYTES))


def numbers(draw: random.Random, dtype: str, count: int, style: str) -> bytes:
    """``count`` elements: weights-like ones, noise (every NaN among them), or all the same."""
    width = DTYPES[dtype]
    if style == "noise":
        return draw.randbytes(count * width)
    if style == "same":
        return draw.randbytes(width) * count
    top = bytes(draw.choice((0x3C, 0x3D, 0xBC, 0xBD, 0x3E)) for _ in range(count))
    return b"".join(draw.randbytes(width - 1) + top[at : at + 1] for at in range(count))


@st.composite
def tensor_files(draw: st.DrawFn) -> TensorFile:
    """Up to a dozen records of 1,024 bytes."""
    random_ = random.Random(draw(st.integers(0, 1 << 32)))
    file = TensorFile()
    masters: list[bytes] = []
    for _ in range(draw(st.integers(0, 6))):
        file.content += random_.choice((bytes, random_.randbytes))(draw(st.sampled_from((0, 0, 1, 2, 3, 7, 64, 500, 2500))))
        what = draw(st.sampled_from((*DTYPES, "weights", "weights", "half weights")))
        count = draw(st.sampled_from((0, 1, 31, 32, 100, 256, 700)))
        if what in DTYPES:
            raw = numbers(random_, what, count, draw(st.sampled_from(("weights", "weights", "noise", "same"))))
            file.add(what, raw)
            masters += [raw] if what == "float32" else []
        elif masters:
            dtype = "bfloat16" if what == "weights" else "float16"
            raw = bytearray(cast(draw(st.sampled_from(masters)), KINDS[dtype]))
            if raw and draw(st.integers(0, 3)) == 0:
                raw[random_.randrange(len(raw))] ^= 1
            file.add(dtype, bytes(raw))
    return file
