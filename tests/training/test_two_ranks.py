"""What happens to one rank is told to all, so that none of them waits for ever or goes on alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict


def test_a_full_disk_on_one_rank_and_an_epoch_that_only_rank_0_knows_of(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "tests.training.two_ranks_driver", str(folder), str(tmp_path / "rendezvous")]
    ranks = [
        subprocess.Popen(
            command, env={**os.environ, "RANK": str(rank), "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for rank in (0, 1)
    ]
    said = [process.communicate(timeout=100) for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said
    failed = "SeawallError: the checkpoint was not saved [step_0000000{} rank 1]"
    first, second = (json.loads(out) for out, _ in said)
    # What was half written is removed before anybody is told.
    assert first == [failed.format(1), "[]", failed.format(2), "[]", "3 2 True", "EpochClosedError"]
    assert second == [failed.format(1), failed.format(2), "3 2 True", "EpochClosedError"]
    assert [path.name for path in folder.glob("step_*")] == ["step_00000003"]
    found = inspect(folder / "step_00000003", deep=True)
    assert (found.verdict, found.world_size) == (Verdict.OK, 2)
    assert {tensor.name for tensor in found.tensors} == {"mine.rank0", "mine.rank1"}
