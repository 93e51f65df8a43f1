"""``seawall verify`` names the tensors behind a damaged record, where this host can open the inventory."""

from pathlib import Path
from typing import Any

import torch

from seawall.training.checkpointer import Checkpointer
from seawall.vault.header import HEADER_BYTES
from tests.cli.conftest import DemoSite

RECORD = 8 << 20


def state() -> dict[str, Any]:
    """Of the file's two records the second holds the end of "big" and all of "late". Noise, which no codec makes shorter."""
    noise = torch.Generator().manual_seed(1)
    return {
        "big": torch.randint(0, 256, (RECORD + 4000,), dtype=torch.uint8, generator=noise),
        "late": torch.randint(0, 256, (4000,), dtype=torch.uint8, generator=noise),
        "step": 5,
    }


def test_the_tensors_in_a_damaged_record(site: DemoSite) -> None:
    with Checkpointer(site.source, epoch=1) as checkpointer:
        checkpointer.save(5, state())
    site.good("sync", "gpt")
    [stored] = [path for path in (site.folder / "a").rglob("file-*.sea") if path.stat().st_size > RECORD]
    _flip(stored, HEADER_BYTES + RECORD + 2000)
    found = site("verify", "gpt", "--json")
    assert found.code == 4
    [damage] = next(copy for copy in found.document["copies"] if copy["store"] == "a")["damages"]
    assert (damage["file"], damage["records"]) == ("__0_0.distcp", [1])
    assert damage["tensors"] == ["big", "late"]
    assert "tensors in it: big, late" in site("verify", "gpt", "--unsigned").out
    # A damaged frame leaves nothing of the file.
    _flip(stored, 5)
    found = site("verify", "gpt", "--json")
    [damage] = next(copy for copy in found.document["copies"] if copy["store"] == "a")["damages"]
    assert (damage["file"], damage["records"], damage["tensors"]) == ("__0_0.distcp", [], ["big", "late"])


def test_the_first_record_names_the_first_tensor_only(site: DemoSite) -> None:
    with Checkpointer(site.source, epoch=1) as checkpointer:
        checkpointer.save(5, state())
    site.good("sync", "gpt")
    [stored] = [path for path in (site.folder / "a").rglob("file-*.sea") if path.stat().st_size > RECORD]
    _flip(stored, HEADER_BYTES + 5000)
    [damage] = next(copy for copy in site("verify", "gpt", "--json").document["copies"] if copy["store"] == "a")["damages"]
    assert (damage["records"], damage["tensors"]) == ([0], ["big"])


def _flip(path: Path, at: int) -> None:
    path.chmod(0o600)
    with open(path, "r+b") as file:
        file.seek(at)
        [found] = file.read(1)
        file.seek(at)
        file.write(bytes([found ^ 1]))
