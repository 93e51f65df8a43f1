"""The example trains for real: exactly the same after a kill, and on another number of ranks."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Inspection, Verdict
from seawall.training.resume import load
from seawall.training.steps import step_states
from tests.cli.conftest import DemoSite
from tests.cli.conftest import cli as cli
from tests.cli.conftest import site as site
from tests.training.little_airflow import PASSWORD, USERNAME, LittleAirflow

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "train_tiny.py")
SMALL = ["--width", "64", "--layers", "2", "--context", "32", "--batch", "4", "--text-bytes", "400000", "--deterministic"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(*options: object, ranks: int = 1) -> list[str]:
    start = [sys.executable]
    if ranks > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return [*start, EXAMPLE, *SMALL, *map(str, options)]


def train(*options: object, ranks: int = 1) -> str:
    done = subprocess.run(command(*options, ranks=ranks), env=ENVIRONMENT, capture_output=True, text=True, timeout=115)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(path: Path) -> dict[int, tuple[str, str]]:
    """Step → loss and gradient norm in hexadecimal, of the last time that the step was trained."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["step"]: (line["loss"], line["gradient_norm"]) for line in lines}


@pytest.mark.slow
def test_after_a_kill_every_loss_is_the_one_of_a_run_that_was_not_killed(tmp_path: Path) -> None:
    train("--folder", tmp_path / "reference", "--steps", 14, "--save-every", 100, "--losses", tmp_path / "reference.jsonl")
    reference = losses(tmp_path / "reference.jsonl")
    assert len({loss for loss, _ in reference.values()}) == 14, "it learns: no two losses are the same"
    folder = tmp_path / "killed"
    options = ["--folder", folder, "--save-every", 4, "--async", "--board", tmp_path / "board"]
    # Losses go through a pipe, so that the kill comes at a known step.
    process = subprocess.Popen(
        command(*options, "--steps", 10**6, "--losses", "/dev/stderr"),
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("{") and json.loads(line)["step"] == 10:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was still training"
    step = inspect(folder).step
    assert step in (4, 8), "step 8 was saved in the background, and may not have been committed at step 10"
    said = train(*options, "--resume-from", folder, "--steps", 14, "--losses", tmp_path / "resumed.jsonl")
    assert f"resumed from step {step} of epoch 1" in said
    resumed = losses(tmp_path / "resumed.jsonl")
    assert resumed == {at: reference[at] for at in range(step + 1, 15)}
    board = json.loads((tmp_path / "board" / "tiny" / "rank-00000.json").read_text())
    assert (board["phase"], board["step"], board["epoch"]) == ("ended", 14, 1)
    assert float(board["loss"]).hex() == reference[14][0]


@pytest.mark.slow
def test_a_trainer_whose_epoch_is_closed_ends_and_what_it_saved_before_is_told_to_airflow(site: DemoSite, tmp_path: Path) -> None:
    airflow = LittleAirflow()
    credentials = tmp_path / "airflow.json"
    credentials.write_text(json.dumps({"username": USERNAME, "password": PASSWORD}))
    credentials.chmod(0o600)
    root = tomllib.loads(site.config.read_text())["trust_root"]
    options = ["--run", "gpt", "--folder", site.source, "--save-every", 2, "--log", (site.folder / "c").as_uri(), "--trust-root", root]
    # It would train for ever; a look at the log is due with every save.
    process = subprocess.Popen(
        command(*options, "--steps", 10**9, "--keep", 1, "--copies", 2, "--notify", airflow.url, "--credentials", credentials),
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert airflow.wait_for(2, timeout=100)
        event = airflow.events[0]["extra"]
        assert event == {"run": "gpt", "step": 2, "path": str(site.source / "step_00000002"), "epoch": 1}
        site.good("log", "epoch", "gpt", "--reason", "the zone is gone", "--yes")
        _, said = process.communicate(timeout=100)
    finally:
        process.kill()
        airflow.stop()
    assert process.returncode == 1
    assert "EpochClosedError: this process trains under a closed epoch" in said
    assert PASSWORD not in said
    steps = [state.step for state in step_states(site.source) if state.complete]
    assert steps[:2] == [2, 4], "nothing is proved, so nothing was pruned"


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """The model's and the optimizer's tensors of a checkpoint, whole, by their names in it."""
    found = inspect(folder)
    state: dict[str, Any] = {
        tensor.name: torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype))
        for tensor in found.tensors
        if tensor.name.startswith(("model.", "optimizer.state."))
    }
    load(folder, state, leave=("random.", "text.", "step", "optimizer.param_groups"))
    return state


def assembled(found: Inspection) -> dict[str, bytes]:
    """Every tensor's bytes put together from the spans of its pieces in the files, without DCP."""
    whole = {}
    for tensor in found.tensors:
        into = torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype))
        for piece in tensor.pieces:
            assert piece.start is not None
            raw = bytearray((Path(found.path) / piece.file).read_bytes()[piece.start : piece.start + piece.nbytes])
            part = torch.frombuffer(raw, dtype=into.dtype).reshape(piece.shape)
            into[tuple(slice(at, at + size) for at, size in zip(piece.offsets, piece.shape, strict=True))] = part
        whole[tensor.name] = into.numpy().tobytes()
    return whole


@pytest.mark.slow
def test_two_ranks_then_one_then_two(tmp_path: Path) -> None:
    # Without dropout the ranks together compute what one does, but for the order of sums.
    common = ["--folder", tmp_path / "run", "--save-every", 2, "--dropout", 0, "--losses", tmp_path / "run.jsonl"]
    train("--folder", tmp_path / "reference", "--steps", 6, "--save-every", 6, "--dropout", 0, "--losses", tmp_path / "reference.jsonl")
    train(*common, "--steps", 2, "--shard", ranks=2)
    two = inspect(tmp_path / "run", deep=True)
    assert (two.verdict, two.world_size, two.step) == (Verdict.OK, 2, 2)
    assert {len(tensor.pieces) for tensor in two.tensors if tensor.name.startswith("model.blocks.0.mlp")} == {2}, "each in two parts"
    # One process resharding what two saved gets exactly the bytes that lie in the two files.
    raw = assembled(two)
    resharded = weights(tmp_path / "run")
    assert len(resharded) > 60
    assert [name for name, tensor in resharded.items() if tensor.numpy().tobytes() != raw[name]] == []
    said = train(*common, "--steps", 4, "--resume-from", tmp_path / "run")
    assert "resumed from step 2 of epoch 1, written by 2 ranks" in said
    one = inspect(tmp_path / "run")
    assert (one.step, one.world_size, one.tensors[0].pieces[0].shape) == (4, 1, one.tensors[0].shape)
    # This time replicated, and saved in the background.
    said = train(*common, "--steps", 6, "--resume-from", tmp_path / "run", "--async", ranks=2)
    assert "resumed from step 4 of epoch 1, written by 1 ranks" in said
    last = inspect(tmp_path / "run", deep=True)
    assert (last.verdict, last.world_size, last.step) == (Verdict.OK, 2, 6)
    reference, found = losses(tmp_path / "reference.jsonl"), losses(tmp_path / "run.jsonl")
    assert sorted(found) == sorted(reference) == [1, 2, 3, 4, 5, 6]
    for step in reference:
        assert float.fromhex(found[step][0]) == pytest.approx(float.fromhex(reference[step][0]), rel=1e-4)
        assert float.fromhex(found[step][1]) == pytest.approx(float.fromhex(reference[step][1]), rel=1e-2)
    expected, got = weights(tmp_path / "reference"), weights(tmp_path / "run")
    assert expected.keys() == got.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(got[name], tensor, rtol=1e-2, atol=1e-3, msg=name)
