"""From facts to the integrity matrix. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from seawall.verify.cells import (
    MatrixPolicy,
    chain_cell,
    file_cell,
    key_cell,
    lock_cell,
    run_cell,
    structure_cell,
    timeliness_cell,
    values_cell,
)
from seawall.verify.levels import Level
from seawall.verify.matrix import Cell, Dimension, Matrix, Response, Row, Verdict
from seawall.verify.matrix_facts import CopyFacts, RunFacts


def judge(facts: RunFacts, now: datetime, policy: MatrixPolicy) -> Matrix:
    """The matrix of a run at ``now``."""
    files = [file_cell(copy, now, policy) for copy in facts.copies]
    whole = _not_failed(facts.copies, files)
    opened = {
        copy.sealing.commit.sealing
        for copy in facts.copies
        if copy.bytes_state is not None and copy.bytes_state.level is not None and copy.bytes_state.level >= Level.L3
    }
    rows = []
    for copy, file in zip(facts.copies, files, strict=True):
        others = whole.get(copy.sealing.commit.sealing, [])
        cells = {
            Dimension.FILE: _with_response(copy, file, others, copy.sealing.commit.sealing in opened),
            Dimension.STRUCTURE: structure_cell(copy, now, policy),
            Dimension.TIMELINESS: timeliness_cell(copy, now, policy),
            Dimension.CHAIN: chain_cell(copy, facts, now),
            Dimension.VALUES: values_cell(copy, now, policy),
            Dimension.LOCK: lock_cell(copy, now, policy),
            Dimension.KEY: key_cell(copy, now, policy),
        }
        commit = copy.sealing.commit
        level = copy.state.level if copy.state is not None else None
        rows.append(Row(commit.sealing, commit.step, copy.store, level, copy.sealing.quarantine, copy.sealing.lifted, cells))
    return Matrix(facts.run, now, tuple(rows), run_cell(facts, now, policy), facts.held)


def _not_failed(copies: Sequence[CopyFacts], files: Sequence[Cell]) -> Mapping[str, list[str]]:
    """Sealing → ids of the stores whose copy may serve to heal another. One that is stale or was never read may: what is taken from it is
    held against the signed digests, and only where that fails, too, is anything lost."""
    whole: dict[str, list[str]] = {}
    for copy, file in zip(copies, files, strict=True):
        if file.verdict is not Verdict.FAILED:
            whole.setdefault(copy.sealing.commit.sealing, []).append(copy.store.id)
    return whole


def _with_response(copy: CopyFacts, file: Cell, others: Sequence[str], content_proved: bool) -> Cell:
    """What a damaged copy calls for depends on the others."""
    if file.verdict is not Verdict.FAILED:
        return file
    state = copy.bytes_state
    if state is not None and state.failure is not None and state.failure.level >= Level.L3:
        # Its bytes are those that were signed, so they are the same in every store: nothing to heal it from. When the same bytes were
        # opened well elsewhere since, it was the reader that failed.
        return replace(file, response=Response.PROVE if content_proved else Response.QUARANTINE)
    return replace(file, response=Response.HEAL if others else Response.INCIDENT)
