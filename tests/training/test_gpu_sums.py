"""Sums of tensors in GPU memory: taken there, and after their copy to the host where nothing can run there."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.sums_file import decode_sums, sums_name
from seawall.kernels.device import number_of_gpus
from seawall.training import summing
from seawall.training.checkpointer import Checkpointer
from tests.training.test_tensor_sums import SAVES

NO_GPU = not torch.cuda.is_available() or number_of_gpus() == 0


class Elsewhere:
    """What is looked at of a tensor in the memory of a GPU that this machine does not have."""

    device = torch.device("cuda", 99)

    def numel(self) -> int:
        return 4

    def element_size(self) -> int:
        return 4

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 99


def test_without_a_usable_gpu_it_is_said_once_and_the_host_sums(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: set[Any] = set()
    monkeypatch.setattr(summing, "_UNUSABLE", tried)
    tensor: Any = Elsewhere()
    with caplog.at_level(logging.WARNING, logger=summing.__name__):
        assert summing.sums_on_gpu({("w", ()): tensor}) == []
        assert summing.sums_on_gpu({("w", ()): tensor}) == []
    assert caplog.text.count("summed after their copy to the host") == 1
    assert tried == {torch.device("cuda", 99)}


def test_what_is_in_host_memory_is_no_matter_of_a_gpu() -> None:
    assert summing.sums_on_gpu({("w", (0,)): torch.ones(3)}) == []


@pytest.mark.skipif(NO_GPU, reason="needs a GPU and CuPy")
@pytest.mark.parametrize("save", SAVES, ids=["save", "save_async"])
def test_tensors_in_gpu_memory_are_summed_there(tmp_path: Path, save: Any) -> None:
    base = torch.randn(300, 77, device="cuda")
    state = {"w": base, "t": base.t(), "bf16": base.bfloat16()[3:], "fp8": base.to(torch.float8_e4m3fn), "host": torch.ones(5)}
    with Checkpointer(tmp_path, epoch=1) as checkpointer:
        save(checkpointer, 1, state)
    path = tmp_path / "step_00000001"
    places = {one.name: one.at for one in decode_sums((path / sums_name(0)).read_bytes(), 0, "")}
    assert places == {"w": "cuda", "t": "cuda", "bf16": "cuda", "fp8": "cuda", "host": "cpu"}
    found = inspect(path, deep=True)
    assert (found.verdict, found.reasons) == (Verdict.OK, [])
