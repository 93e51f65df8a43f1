"""Numbers that files claim about the world are not believed without bound."""

import argparse
import json
import struct
from pathlib import Path

import pytest
import torch

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict
from tests.cases.make_cases import put, put_deepspeed, put_json, put_torch, rank_payload

HUGE = 1 << 61


def test_a_world_of_two_to_the_61_ranks(tmp_path: Path) -> None:
    put_torch(tmp_path / "rank_00000.pt", rank_payload(1, 0, HUGE, 100))
    found = inspect(tmp_path)
    assert found.verdict is Verdict.INCOMPLETE
    assert len(found.reasons) < 200


def test_a_partition_count_of_two_to_the_61(tmp_path: Path) -> None:
    tag = put_deepspeed(tmp_path, 1, 100)
    name = "zero_pp_rank_0_mp_rank_00_optim_states.pt"
    obj = torch.load(tag / name, weights_only=False)
    obj["optimizer_state_dict"]["partition_count"] = HUGE
    put_torch(tag / name, obj)
    found = inspect(tmp_path)
    assert found.verdict in (Verdict.INCOMPLETE, Verdict.CORRUPT)
    assert len(found.reasons) < 200


def test_megatron_ranks_by_the_billion(tmp_path: Path) -> None:
    args = argparse.Namespace(tensor_model_parallel_size=HUGE, pipeline_model_parallel_size=HUGE)
    put_torch(tmp_path / "iter_0000001" / "mp_rank_00" / "model_optim_rng.pt", {"args": args, "iteration": 1})
    put(tmp_path / "latest_checkpointed_iteration.txt", "1")
    found = inspect(tmp_path)
    assert found.verdict is Verdict.CORRUPT
    assert len(found.reasons) < 200


def test_shards_by_the_hundred_thousand(tmp_path: Path) -> None:
    put(tmp_path / "model-00001-of-999999.safetensors", struct.pack("<Q", 2) + b"{}")
    found = inspect(tmp_path)
    assert found.verdict is Verdict.INCOMPLETE
    assert len(found.reasons) < 200


def test_a_header_longer_than_the_library_reads_is_a_warning(tmp_path: Path) -> None:
    """Files of 1.3 million tensors have such headers: they are backed up, not refused."""
    length = 170_000_000
    with (tmp_path / "m.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", length) + b'{"a":')
        file.truncate(8 + length + 64)
    found = inspect(tmp_path / "m.safetensors")
    assert found.verdict is Verdict.WARN


@pytest.mark.parametrize("number", ["1" * 5000, "-1", "1e400", "null", '"7"', "[7]", "true"])
def test_a_step_that_is_no_step(tmp_path: Path, number: str) -> None:
    folder = tmp_path / "checkpoint-7"
    put_torch(folder / "optimizer.pt", {"state": {}, "param_groups": []})
    put(folder / "trainer_state.json", '{"global_step": ' + number + "}")
    found = inspect(folder)
    assert found.step in (None, 7)
    json.dumps(found.as_json())


def test_names_with_control_characters_survive_as_json(tmp_path: Path) -> None:
    put_torch(tmp_path / "m.pt", {"\x1b[31mred\udc80": torch.tensor([float("nan")])})
    found = inspect(tmp_path / "m.pt", deep=True)
    assert found.verdict is Verdict.WARN
    assert "\x1b" not in json.dumps(found.as_json())
    put_json(tmp_path / "report.json", [reason.text.encode("unicode_escape").decode() for reason in found.reasons])
