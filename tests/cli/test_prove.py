"""`seawall prove` and `seawall check-proof`: a proof leaves the site and is checked where there is no store and no key."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, DemoSite


def trust_root(site: DemoSite) -> str:
    return next(line.split('"')[1] for line in site.config.read_text().splitlines() if line.startswith("trust_root"))


@pytest.fixture
def names(site: DemoSite) -> list[str]:
    site.commit(100)
    return [file["name"] for file in site.good("copies", "gpt", "--step", "100", "--files")["files"]]


def test_a_file_of_the_checkpoint_is_proved_and_checked_elsewhere(
    site: DemoSite, cli: Cli, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    name = names[0]
    done = site.good("prove", "gpt", name, "--output", elsewhere / "proof.json")
    assert done["step"] == 100 and done["opened"]
    content = (site.source / "step_100" / name).read_bytes()
    (elsewhere / "file").write_bytes(content)
    root = trust_root(site)
    monkeypatch.chdir(elsewhere)
    for store in ("a", "c"):
        (site.folder / store).rename(site.folder / f"gone-{store}")
    said = cli("check-proof", "proof.json", "--file", "file", "--trust-root", root, "--json")
    assert said.code == 0, said
    assert (said.document["name"], said.document["bytes"], said.document["file"]) == (name, str(len(content)), "plaintext")
    assert name in cli("check-proof", "proof.json", "--trust-root", root).out
    (elsewhere / "file").write_bytes(content + b"x")
    assert cli("check-proof", "proof.json", "--file", "file", "--trust-root", root).code == 4
    assert cli("check-proof", "proof.json", "--trust-root", "ed25519:" + "00" * 32).code == 10


def test_an_object_is_proved_without_a_key(site: DemoSite, cli: Cli, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "keyring.json").unlink(missing_ok=True)
    said = site("prove", "gpt", "file-0.sea", "--object")
    assert said.code == 0 and json.loads(said.out)["opening"] is None
    proof = tmp_path / "proof.json"
    proof.write_text(said.out)
    sealing = site.good("copies", "gpt")["checkpoints"][0]["sealing"]
    stored = site.sealing_folder("a", sealing) / "file-0.sea"
    assert site("check-proof", proof, "--file", stored, "--json").document["file"] == "object"
    assert site("check-proof", proof, "--file", site.source / "step_100" / names[0]).code == 2, "it says nothing of the plaintext"
    assert site("prove", "gpt", "file-99.sea", "--object").code == 6


def test_what_cannot_be_proved_or_written_says_so(site: DemoSite, names: list[str], tmp_path: Path) -> None:
    assert site("prove", "gpt", "unheard-of").code == 6
    assert site("prove", "gpt", names[0], "--step", "7").code == 6
    assert site("prove", "gpt", names[0], "--json").code == 2
    (tmp_path / "taken").write_text("mine")
    assert site("prove", "gpt", names[0], "--output", tmp_path / "taken").code == 2
    assert (tmp_path / "taken").read_text() == "mine"
    assert site("check-proof", tmp_path / "nowhere").code == 2
    assert site("check-proof", tmp_path / "taken").code == 4


def test_a_damaged_first_copy_leaves_the_second_to_prove_from(site: DemoSite, names: list[str], tmp_path: Path) -> None:
    sealing = site.good("copies", "gpt")["checkpoints"][0]["sealing"]
    (site.sealing_folder("a", sealing) / "manifest.json").unlink()
    assert site.good("prove", "gpt", names[0], "--output", tmp_path / "proof.json")["opened"]
