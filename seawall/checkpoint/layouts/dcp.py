"""A directory of torch.distributed.checkpoint: rank files ``__<rank>_<n>.distcp`` and ``.metadata``, which is written last.

Every chunk in a rank file is a torch zip of its own. The stock reader unpickles ``.metadata`` without any guard (pytorch pull
190877), and loads a
checkpoint with holes between chunks without a word; both are looked for here.
"""

import re
from collections.abc import Iterable
from itertools import islice, pairwise

from seawall.checkpoint.boxes import tiling_fault, volume
from seawall.checkpoint.dcp_metadata import Chunk, DcpMetadata, DcpTensor, Place, read_metadata
from seawall.checkpoint.dtypes import BITS
from seawall.checkpoint.inspection import Piece, Tensor, Verdict
from seawall.checkpoint.look import MAX_ABSENT, Look
from seawall.checkpoint.paths import inside
from seawall.checkpoint.pickles.judge import judge_pickle
from seawall.checkpoint.pickles.machine import read_pickle
from seawall.checkpoint.reading import OpenFile, Part
from seawall.checkpoint.safetensors import read_safetensors
from seawall.checkpoint.torch_zip import read_torch_zip
from seawall.errors import CorruptError

METADATA = ".metadata"
RANK_FILE = re.compile(r"__(\d{1,9})_(\d{1,9})\.distcp")
RANK_METADATA = re.compile(r"__(\d{1,9})\.metadata")
MAX_METADATA = 2 << 30


def is_dcp(names: Iterable[str]) -> bool:
    """Whether file names of one folder are those of a distributed checkpoint."""
    return any(name in (METADATA, METADATA + ".tmp") or RANK_FILE.fullmatch(name) or RANK_METADATA.fullmatch(name) for name in names)


def inspect_dcp(look: Look, below: str = "", prefix: str = "") -> None:
    """Judge the folder ``below`` as a distributed checkpoint. ``prefix`` goes before tensor names where a checkpoint has several."""
    _Dcp(look, below, prefix).run()


class _Dcp:
    def __init__(self, look: Look, below: str, prefix: str) -> None:
        self.look = look
        self.below = below
        self.prefix = prefix
        self.named: set[str] = set()

    def path(self, name: str) -> str:
        return f"{self.below}/{name}" if self.below else name

    def run(self) -> None:
        names = self.look.folder.names(self.below)
        sources = [METADATA] if METADATA in names else sorted(name for name in names if RANK_METADATA.fullmatch(name))
        if not sources:
            text = "the save has not finished: .metadata, which is written last, is not there"
            if METADATA + ".tmp" in names:
                text += " (only .metadata.tmp)"
            self.look.found.add(Verdict.INCOMPLETE, text, self.path(METADATA))
            self.judge_rank_files(names)
            return
        if sources != [METADATA]:
            self.check_rank_metadata(sources, names)
        merged = DcpMetadata()
        for name in sources:
            found = self.metadata(self.path(name))
            if found is None:
                return
            _merge(merged, found)
        self.check_places(merged)
        for key, tensor in merged.tensors.items():
            self.tensor(key, tensor, merged)
        self.read_chunks(merged)
        self.leftovers(names)
        ranks = {int(match.group(1)) for name in self.named if (match := RANK_FILE.fullmatch(name.rpartition("/")[2]))}
        if ranks and self.look.found.world_size is None:
            self.look.found.world_size = max(ranks) + 1

    def judge_rank_files(self, names: list[str]) -> None:
        """Without a map nothing can be said about rank files, except how many there are."""
        ranks = [name for name in names if RANK_FILE.fullmatch(name)]
        if not ranks:
            self.look.found.add(Verdict.INCOMPLETE, "there are no rank files either", self.path("__0_0.distcp"))

    def check_rank_metadata(self, sources: list[str], names: list[str]) -> None:
        """``use_collectives=False``: each rank writes its own map, and nothing says how many ranks there were."""
        have = {int(name[2:].partition(".")[0]) for name in sources}
        writers = {int(match.group(1)) for name in names if (match := RANK_FILE.fullmatch(name))}
        # Ranks come from names of files, so their number is no reason to count on.
        ranks = (rank for rank in range(max(have | writers) + 1 if have else 0) if rank not in have)
        for rank in islice(ranks, MAX_ABSENT):
            self.look.found.add(Verdict.INCOMPLETE, f"the metadata of rank {rank} is not there", self.path(f"__{rank}.metadata"))
        self.look.found.add(
            Verdict.OK, "each rank wrote its own metadata (saved without collectives); the number of ranks is not recorded", self.below
        )

    def metadata(self, file: str) -> DcpMetadata | None:
        with self.look.guarded(file):
            raw = self.look.folder.read(file, MAX_METADATA)
            if not raw.strip(b"\0"):
                raise CorruptError("the file is empty" if not raw else "the file is nothing but zeros", where=file)
            pickle = read_pickle(raw, 0, file)
            hostile = False
            for finding in judge_pickle(pickle):
                self.look.found.add(finding.verdict, finding.text, file)
                hostile = hostile or finding.verdict is Verdict.HOSTILE
            if not hostile:
                return read_metadata(pickle.top, file)
        return None

    def check_places(self, metadata: DcpMetadata) -> None:
        """Files exist inside the folder, are long enough, and entries do not overlap in them."""
        spans: dict[str, list[tuple[int, int, str]]] = {}
        for (key, _), place in metadata.places.items():
            if not inside(place.file):
                self.look.found.add(Verdict.HOSTILE, f"the place of {key} leads out of the folder: {place.file}", self.path(METADATA), key)
                continue
            spans.setdefault(place.file, []).append((place.offset, place.offset + place.length, key))
        for file, found in sorted(spans.items()):
            path = self.path(file)
            self.named.add(path)
            entry = self.look.folder.entries.get(path)
            if entry is None:
                self.look.found.add(Verdict.INCOMPLETE, f"the rank file {file} is not there, {len(found)} entries are in it", path)
                continue
            if entry.kind != "file":
                continue
            found.sort()
            if found[-1][1] > entry.size:
                short = max(found, key=lambda span: span[1])
                self.look.found.add(
                    Verdict.CORRUPT, f"the file is cut: it has {entry.size} bytes, {short[2]} ends at byte {short[1]}", path, short[2]
                )
            for (_, end, first), (start, _, second) in pairwise(found):
                if start < end:
                    self.look.found.add(Verdict.CORRUPT, f"{first} and {second} claim the same bytes", path, second)
                    break

    def tensor(self, key: str, tensor: DcpTensor, metadata: DcpMetadata) -> None:
        fault = tiling_fault(tensor.shape, [(chunk.offsets, chunk.shape) for chunk in tensor.chunks])
        if fault:
            self.look.found.add(Verdict.CORRUPT, f"tensor {key}: {fault}", self.path(METADATA), key)
        for chunk in tensor.chunks:
            if (key, chunk.offsets) not in metadata.places and volume(chunk.shape):
                self.look.found.add(
                    Verdict.CORRUPT,
                    f"tensor {key}: nothing says where the chunk at {list(chunk.offsets)} is stored",
                    self.path(METADATA),
                    key,
                )

    def read_chunks(self, metadata: DcpMetadata) -> None:
        """Open each rank file once and look at each of its chunks in order."""
        wanted: dict[str, list[tuple[Place, str, Chunk | None]]] = {}
        for key, tensor in metadata.tensors.items():
            for chunk in tensor.chunks:
                place = metadata.places.get((key, chunk.offsets))
                if place is not None:
                    wanted.setdefault(place.file, []).append((place, key, chunk))
        for key in metadata.objects:
            place = metadata.places.get((key, None)) or metadata.places.get((key, ()))
            if place is None:
                self.look.found.add(Verdict.CORRUPT, f"nothing says where {key} is stored", self.path(METADATA), key)
            else:
                wanted.setdefault(place.file, []).append((place, key, None))
        pieces: dict[str, list[Piece]] = {key: [] for key in metadata.tensors}
        for file, found in sorted(wanted.items()):
            path = self.path(file)
            entry = self.look.folder.entries.get(path)
            if not inside(file) or entry is None:
                continue
            with self.look.guarded(path), self.look.folder.open(path) as source:
                for place, key, part in sorted(found, key=lambda item: item[0].offset):
                    if place.offset + place.length <= source.size:
                        self.chunk(source, path, place, key, part, metadata, pieces)
        for key, tensor in metadata.tensors.items():
            self.look.add_tensor(Tensor(self.prefix + key, tensor.dtype, tensor.shape, tuple(pieces[key])))

    def chunk(
        self,
        source: OpenFile,
        path: str,
        place: Place,
        key: str,
        chunk: Chunk | None,
        metadata: DcpMetadata,
        pieces: dict[str, list[Piece]],
    ) -> None:
        part = Part(source, place.offset, place.length)
        if place.transformed:
            if chunk is not None:
                pieces[key].append(Piece(path, self.nbytes(metadata.tensors[key].dtype, chunk), None, chunk.offsets, chunk.shape))
            return
        with self.look.guarded(path, key):
            head = part.read(0, 9)
            if head[:2] == b"PK" or chunk is None:
                if head[:2] != b"PK":
                    return
                content = read_torch_zip(part, path, place.offset, self.look.deep)
            elif head[8:9] == b"{":
                content = read_safetensors(part, path, place.offset, self.look.deep)
            else:
                raise CorruptError(f"the bytes of {key} do not begin like a stored tensor", where=path)
            for trouble in content.troubles:
                self.look.found.add(trouble.verdict, f"{key}: {trouble.text}", path, key)
            if not content.ours:
                raise CorruptError(f"the bytes of {key} are a {content.kind}", where=path)
            if chunk is None:
                self.step(key, content.top)
                return
            tensor = metadata.tensors[key]
            if len(content.tensors) != 1:
                if content.usable and not (tensor.dtype.startswith("q") or len(content.tensors) > 1):
                    raise CorruptError(f"the bytes of {key} hold {len(content.tensors)} tensors", where=path)
                pieces[key].append(Piece(path, self.nbytes(tensor.dtype, chunk), None, chunk.offsets, chunk.shape))
                return
            stored = content.tensors[0]
            if stored.shape != chunk.shape and not (volume(stored.shape) == volume(chunk.shape) == 1):
                raise CorruptError(
                    f"tensor {key}: .metadata promises a chunk of {list(chunk.shape)}, {list(stored.shape)} is stored", where=path
                )
            if stored.dtype != tensor.dtype and tensor.dtype != "unknown":
                raise CorruptError(f"tensor {key}: .metadata promises {tensor.dtype}, {stored.dtype} is stored", where=path)
            piece = stored.pieces[0]
            pieces[key].append(Piece(path, piece.nbytes, piece.start, chunk.offsets, chunk.shape))

    def nbytes(self, dtype: str, chunk: Chunk) -> int:
        return volume(chunk.shape) * BITS.get(dtype, 8) // 8

    def step(self, key: str, value: object) -> None:
        """A trainer's own counter, saved as an object."""
        if self.look.found.step is None and isinstance(value, int) and not isinstance(value, bool):
            if key.rpartition(".")[2] in ("step", "global_step", "iteration", "train_steps") and 0 <= value < 10**18:
                self.look.found.step = value

    def leftovers(self, names: list[str]) -> None:
        for name in names:
            path = self.path(name)
            if RANK_FILE.fullmatch(name) and path not in self.named:
                if self.look.folder.entries[path].size == 0:
                    self.look.found.add(
                        Verdict.WARN, "a rank file of 0 bytes: that rank had nothing to write, or its tensors were lost as duplicates", path
                    )
                else:
                    self.look.found.add(Verdict.WARN, "no entry of .metadata is in this file: it is left over from an earlier save", path)


def _merge(into: DcpMetadata, more: DcpMetadata) -> None:
    for key, tensor in more.tensors.items():
        known = into.tensors.get(key)
        if known is None:
            into.tensors[key] = tensor
        else:
            known.chunks.extend(chunk for chunk in tensor.chunks if chunk not in known.chunks)
    into.objects.extend(key for key in more.objects if key not in into.objects)
    into.places.update(more.places)
