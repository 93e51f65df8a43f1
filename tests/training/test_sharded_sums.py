"""Sums of tensors that several ranks hold parts of: each rank sums what it writes, and any number of ranks checks it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.sums_file import decode_sums, sums_name
from seawall.errors import CorruptError
from seawall.kernels.crc64 import crc64
from seawall.training.resume import load
from tests.training.sharded_driver import COLUMNS, ROWS, full


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[object]]]:
    """The run's folder, and what each rank was told."""
    folder = tmp_path_factory.mktemp("sharded")
    command = [sys.executable, "-m", "tests.training.sharded_driver", str(folder / "run"), str(folder / "rendezvous")]
    ranks = [
        subprocess.Popen(
            command, env={**os.environ, "RANK": str(rank), "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for rank in (0, 1)
    ]
    said = [process.communicate(timeout=110) for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said
    return folder / "run", [json.loads(out) for out, _ in said]


def test_ranks_load_what_is_right_and_all_refuse_what_is_not(ran: tuple[Path, list[list[object]]]) -> None:
    _, told = ran
    assert told == [[True, "CorruptError __1_0.distcp rows"]] * 2


def test_each_rank_sums_what_it_writes(ran: tuple[Path, list[list[object]]]) -> None:
    path = ran[0] / "step_00000001"
    sums = [{(one.name, one.offsets): one for one in decode_sums((path / sums_name(rank)).read_bytes(), rank, "")} for rank in (0, 1)]
    assert {("rows", (0, 0)), ("columns", (0, 0)), ("one-row", (0, 0))} <= sums[0].keys()
    assert {("rows", (4, 0)), ("columns", (0, COLUMNS // 2))} <= sums[1].keys()
    # What both have is written and summed by one of them.
    assert sorted(("copies", (0, 0)) in of_rank for of_rank in sums) == [False, True]
    assert sums[1]["rows", (4, 0)].crc64 == crc64(full()[4:].contiguous().numpy().tobytes())
    half = full(torch.bfloat16)[:, COLUMNS // 2 :].contiguous().view(torch.uint8).numpy().tobytes()
    assert (sums[1]["columns", (0, COLUMNS // 2)].crc64, len(half)) == (crc64(half), ROWS * COLUMNS)


def test_an_inspection_finds_all_of_them(ran: tuple[Path, list[list[object]]]) -> None:
    found = inspect(ran[0] / "step_00000001", deep=True)
    assert (found.verdict, found.world_size) == (Verdict.OK, 2)
    pieces = [piece for tensor in found.tensors for piece in tensor.pieces]
    assert len(pieces) >= 7 and all(piece.crc64 is not None for piece in pieces)


def test_one_process_checks_what_two_saved(ran: tuple[Path, list[list[object]]]) -> None:
    def state() -> dict[str, torch.Tensor]:
        return {
            "rows": torch.zeros(ROWS, COLUMNS),
            "columns": torch.zeros(ROWS, COLUMNS, dtype=torch.bfloat16),
            "copies": torch.zeros(ROWS, COLUMNS),
            "one-row": torch.zeros(1, COLUMNS),
            "plain": torch.zeros(ROWS, COLUMNS, dtype=torch.float64),
        }

    whole = state()
    assert load(ran[0] / "step_00000001", whole).step == 1
    assert torch.equal(whole["rows"], full())
    with pytest.raises(CorruptError) as raised:
        load(ran[0] / "step_00000002", state())
    assert raised.value.where.endswith("__1_0.distcp rows")
