"""Seal the files of one batch and write what was sealed. Safe to run twice, at once, or again after a kill.

A few drivers read, hash and encrypt; ``transfers`` senders move parts. Memory is bounded by the parts in flight. After a kill
the files that are in the first place already are adopted, others are sealed again under a new salt.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256

from seawall.errors import CorruptError, NoSuchObjectError, ObjectExistsError
from seawall.protect.assignment import MAX_SEALED_DOCUMENT_BYTES, Assignment, Progress
from seawall.protect.existing import examine
from seawall.protect.fan_out import Behind, FannedUpload, put_everywhere
from seawall.protect.place import Place
from seawall.protect.source_file import OpenSourceFile
from seawall.stores.base import Stored
from seawall.stores.part_buffers import PartBuffers
from seawall.vault.batch import Batch, SealedFile, decode_batch
from seawall.vault.codecs import Codec, codec_of_plan
from seawall.vault.derived import CastCandidates, cast_candidates, find_pairs, least_derived_bytes
from seawall.vault.drivers import drivers_here
from seawall.vault.element_runs import ElementRuns, element_runs
from seawall.vault.header import CHUNK_BYTES, ObjectKind, object_name
from seawall.vault.objects import Row, row_of, row_of_frame
from seawall.vault.open import Resolve, open_bytes
from seawall.vault.piece_sums import PieceSums, Span, TakenSum, check_taken, spans_of, taken_sums
from seawall.vault.seal import Part, Sealer, part_bytes_for, seal_bytes
from seawall.vault.signing import SigningKey

_READ_BYTES = 1 << 20


@dataclass
class BatchOutcome:
    """What sealing one batch gave. ``row`` is the batch object's own."""

    batch: Batch
    row: Row
    adopted: int = 0
    """Files that were there already."""
    behind: dict[str, str] = field(default_factory=dict)
    """Places that missed something, and why; a copy fills them."""


@dataclass(frozen=True)
class _Work:
    assignment: Assignment
    places: Sequence[Place]
    source: str
    signing_key: SigningKey
    resolve: Resolve
    senders: ThreadPoolExecutor
    buffers: PartBuffers
    behind: Behind
    progress: Progress
    chunk_bytes: int
    taken: Sequence[dict[Span, TakenSum]]
    """For each file what training said of its tensors."""
    codec: Codec
    runs: dict[int, ElementRuns]
    """For codecs of byte planes: where the tensors of each file lie."""
    candidates: dict[int, CastCandidates]
    """For codecs that derive weights: the tensors of each file that may be the cast of another."""

    def check_taken(self, number: int, spans: Sequence[Span], sums: PieceSums) -> None:
        check_taken(self.assignment.plan.files[number].name, spans, sums.result(), self.taken[number])


def seal_batch(
    assignment: Assignment,
    number: int,
    *,
    source: str,
    places: Sequence[Place],
    signing_key: SigningKey,
    resolve: Resolve,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
    chunk_bytes: int = CHUNK_BYTES,
) -> BatchOutcome:
    """Seal batch ``number`` of the plan from the folder ``source`` into ``places``, the first of which must take it whole.

    Raises :class:`SourceChangedError` when training still writes, :class:`CorruptError` when something else lies in the
    first place under one of the batch's names or a tensor is not the one that training summed, and what the first place's store raises.
    """
    plan = assignment.plan
    key = assignment.folder + object_name(ObjectKind.BATCH, number)
    if assignment.resumed and (done := _finished_batch(assignment, places, key, number, resolve)):
        progress(sum(plan.files[f.number].size for f in done.batch.files), len(done.batch.files))
        return done
    codec = codec_of_plan(plan.codec, assignment.folder + object_name(ObjectKind.PLAN, 0))
    sizes, numbers = [file.size for file in plan.files], plan.numbers_of(number)
    spans = spans_of(plan.tensors, sizes)
    behind = Behind()
    with ExitStack() as stack:
        senders = stack.enter_context(ThreadPoolExecutor(transfers, "sender"))
        drivers = stack.enter_context(ThreadPoolExecutor(min(drivers_here(), transfers), "driver"))
        buffers = PartBuffers(transfers * (chunk_bytes + (1 << 20)))
        work = _Work(
            assignment, places, source, signing_key, resolve, senders, buffers, behind, progress, chunk_bytes,
            taken_sums(plan.tensors, len(plan.files)), codec,
            element_runs(plan.tensors, sizes, numbers) if codec.has_planes else {},
            cast_candidates(plan.tensors, sizes, numbers) if codec.derives else {},
        )  # fmt: skip
        futures = [drivers.submit(_seal_file, work, file, spans[file]) for file in numbers]
        try:
            results = [future.result()() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    files = tuple(file for file, _, _ in results)
    versions: dict[str, dict[str, str]] = {}
    for file, stored, _ in results:
        for place in places:
            version = stored[place.name].version if place.name in stored else None
            if version is not None:
                versions.setdefault(place.id, {})[file.row.name] = version
    batch = Batch(plan.sealing, number, files, versions)
    row = _put_batch(work, batch, key)
    reasons = {name: str(error) for name, error in behind.reasons.items()}
    return BatchOutcome(batch, row, sum(adopted for _, _, adopted in results), reasons)


_Result = tuple[SealedFile, dict[str, Stored], bool]


def _seal_file(work: _Work, number: int, spans: Sequence[Span]) -> Callable[[], _Result]:
    """Seal one file. Returns what waits for its last request, so that a driver goes on while small files are being sent."""
    plan = work.assignment.plan
    planned = plan.files[number]
    name = object_name(ObjectKind.FILE, number)
    key = work.assignment.folder + name
    if work.assignment.resumed:
        try:
            found = work.places[0].store.head(key)
        except NoSuchObjectError:
            pass
        else:
            result = _adopt(work, number, key, found, spans)
            work.progress(planned.size, 1)
            return lambda: result
    sums = PieceSums(spans)

    def observe(at: int, chunk: memoryview) -> None:
        sums.observe(at, chunk)
        work.progress(len(chunk), 0)

    lent: list[memoryview] = []

    def take(nbytes: int) -> memoryview:
        lent.append(work.buffers.take(nbytes))
        return lent[-1]

    with OpenSourceFile(work.source, planned) as source:

        def check() -> None:
            """Before the last part goes: nothing is stored of a file that changed, or that is not what training had in memory."""
            source.check_unchanged()
            work.check_taken(number, spans, sums)

        candidates, least = work.candidates.get(number), least_derived_bytes(work.chunk_bytes)
        sealer = Sealer(
            sealing=plan.sealing,
            kind=ObjectKind.FILE,
            number=number,
            name=os.fsencode(planned.name),
            plaintext_bytes=planned.size,
            data_key=work.assignment.data_key,
            signing_key=work.signing_key,
            codec=work.codec,
            chunk_bytes=work.chunk_bytes,
            runs=work.runs.get(number),
            pairs=() if candidates is None else find_pairs(candidates, source.read_at, least),
        )
        parts = sealer.parts(source.read_into, take, part_bytes_for(planned.size), observe)
        try:
            first = next(parts)
            if first.last:
                check()
                sending: Future[dict[str, Stored]] = work.senders.submit(_put, work, key, first, lent.pop())
            else:
                stored = _send_parts(work, key, check, first, parts, sealer, lent)
                sending = Future()
                sending.set_result(stored)
        except ObjectExistsError:
            sending = Future()
            sending.set_exception(ObjectExistsError("the object is there already", where=key))
        finally:
            for buffer in lent:
                work.buffers.give(buffer)
    sealed = sealer.sealed
    file = None if sealed is None else SealedFile(number, row_of(sealed), sealed.plaintext_digest, sums.result())

    def wait() -> _Result:
        try:
            stored = sending.result()
        except ObjectExistsError:
            # Another worker of this batch was faster, or a time-out hid that an earlier try arrived.
            result = _adopt(work, number, key, work.places[0].store.head(key), spans)
        else:
            assert file is not None
            result = (file, stored, False)
        work.progress(0, 1)
        return result

    return wait


def _put(work: _Work, key: str, part: Part, buffer: memoryview) -> dict[str, Stored]:
    try:
        return put_everywhere(work.places, key, part.data, part.crc64, work.behind)
    finally:
        part.data.release()
        work.buffers.give(buffer)


def _send_parts(
    work: _Work, key: str, check: Callable[[], None], first: Part, parts: Iterator[Part], sealer: Sealer, lent: list[memoryview]
) -> dict[str, Stored]:
    upload = FannedUpload(work.places, key, work.behind)
    sending: list[Future[None]] = []

    def send(part: Part, buffer: memoryview) -> None:
        try:
            upload.part(part)
        finally:
            part.data.release()
            work.buffers.give(buffer)

    try:
        part: Part | None = first
        while part is not None:
            if part.last:
                check()
            sending.append(work.senders.submit(send, part, lent.pop()))
            for future in [future for future in sending if future.done()]:
                future.result()
                sending.remove(future)
            part = next(parts, None)
        for future in sending:
            future.result()
        assert sealer.sealed is not None
        return upload.finish(sealer.sealed.crc64, sealer.sealed.length)
    except BaseException:
        for future in sending:
            # Buffers come back only from sends that ran, so none is cancelled; each ends by itself.
            future.exception()
        upload.abort()
        raise


def _adopt(work: _Work, number: int, key: str, found: Stored, spans: Sequence[Span]) -> _Result:
    """Take over an object that the first place has, after comparing it with the source."""
    assignment = work.assignment
    planned = assignment.plan.files[number]
    existing = examine(
        work.places[0], key, object_name(ObjectKind.FILE, number), found, assignment.data_key, assignment.plan.sealing, work.resolve
    )
    digest, sums = sha256(), PieceSums(spans)
    with OpenSourceFile(work.source, planned) as source:
        chunk = memoryview(bytearray(min(_READ_BYTES, planned.size) or 1))
        at = 0
        while count := source.read_into(chunk):
            digest.update(chunk[:count])
            sums.observe(at, chunk[:count])
            at += count
        source.check_unchanged()
    work.check_taken(number, spans, sums)
    footer = existing.opener.footer
    if (footer.name, footer.length, footer.digest) != (os.fsencode(planned.name), planned.size, digest.digest()):
        raise CorruptError(
            "the object that is in the store is not this file",
            where=key,
            why="its sealed footer names another name, length or digest than the source has",
            do="the source changed without changing its times: save the checkpoint again",
        )
    for place in work.places[1:]:
        # Whether the others have it is not known here; the copy after the commit finds out and fills them.
        work.behind.add(place, ObjectExistsError("a file was adopted, not sent", where=key))
    return SealedFile(number, existing.row, digest.digest(), sums.result()), {work.places[0].name: found}, True


def _finished_batch(assignment: Assignment, places: Sequence[Place], key: str, number: int, resolve: Resolve) -> BatchOutcome | None:
    try:
        raw = places[0].store.get(key, 0, MAX_SEALED_DOCUMENT_BYTES + 1)
    except NoSuchObjectError:
        return None
    batch, row = read_batch(raw, assignment, number, resolve)
    return BatchOutcome(batch, row, len(batch.files), {place.name: "the batch was sealed by an earlier run" for place in places[1:]})


def read_batch(raw: bytes, assignment: Assignment, number: int, resolve: Resolve) -> tuple[Batch, Row]:
    """Open a batch object and check that it is the asked one of this sealing, and whole."""
    where = f"{assignment.folder}batch-{number}.sea"
    plaintext, opener = open_bytes(raw, assignment.data_key, resolve, where)
    batch = decode_batch(plaintext, where)
    if (batch.sealing, batch.number) != (assignment.plan.sealing, number):
        raise CorruptError("a batch belongs to another sealing", where=where)
    if [file.number for file in batch.files] != assignment.plan.numbers_of(number):
        raise CorruptError("a batch does not hold the files that the plan gives it", where=where)
    return batch, row_of_frame(opener.frame, object_name(ObjectKind.BATCH, number))


def _put_batch(work: _Work, batch: Batch, key: str) -> Row:
    raw, sealed = seal_bytes(
        batch.encode(),
        sealing=batch.sealing,
        kind=ObjectKind.BATCH,
        number=batch.number,
        name=b"",
        data_key=work.assignment.data_key,
        signing_key=work.signing_key,
    )
    try:
        put_everywhere(work.places, key, raw, sealed.crc64, work.behind)
    except ObjectExistsError:
        _, row = read_batch(work.places[0].store.get(key, 0, MAX_SEALED_DOCUMENT_BYTES + 1), work.assignment, batch.number, work.resolve)
        return row
    return row_of(sealed)
