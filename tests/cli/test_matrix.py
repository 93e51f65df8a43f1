"""`seawall matrix` and `seawall verify --due` as a person uses them, over real copies."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seawall.cli import proof_desk
from tests.cli.conftest import DemoSite

VERDICTS = ("file", "structure", "timeliness", "chain", "values", "lock", "key")


def cells(document: dict[str, Any], store: str, step: int = 100) -> dict[str, str]:
    (copy,) = [copy for copy in document["copies"] if (copy["store"], copy["step"]) == (store, step)]
    return {name: cell["verdict"] for name, cell in copy["cells"].items()}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_before_anything_is_proved_everything_of_the_copies_is_unknown(site: DemoSite) -> None:
    site.commit(100)
    said = site("matrix", "gpt", "--json")
    assert said.code == 3
    assert cells(said.document, "a") == dict(zip(VERDICTS, ["unknown", "unknown", "ok", "ok", "unknown", "ok", "unknown"], strict=True))
    assert {call["response"] for call in said.document["calls"]} == {"prove"}
    assert "2 copies have cells that another look would settle" in site("matrix", "gpt").out


def test_after_a_verification_all_is_ok(site: DemoSite) -> None:
    site.commit(100)
    site.good("verify", "gpt")
    said = site("matrix", "gpt", "--json")
    assert said.code == 0, said.out
    for store in ("a", "c"):
        assert set(cells(said.document, store).values()) == {"ok"}
    assert said.document["calls"] == [] and said.document["timeliness"]["verdict"] == "ok"
    shown = site("matrix", "gpt")
    assert shown.code == 0 and "quarantined" not in shown.out
    assert [word in shown.out for word in VERDICTS] == [True] * 7


def test_a_damaged_copy_fails_and_says_where_it_can_be_healed_from(site: DemoSite) -> None:
    sealing = site.commit(100)
    site.good("verify", "gpt")
    flip(site.sealing_folder("a", sealing) / "file-0.sea")
    assert site("verify", "gpt", "--store", "a").code == 4
    said = site("matrix", "gpt", "--json")
    assert said.code == 4 and said.document["exit_code"] == 4
    assert cells(said.document, "a")["file"] == "failed" and cells(said.document, "c")["file"] == "ok"
    (heal,) = [call for call in said.document["calls"] if call["response"] == "heal"]
    assert (heal["stores"], heal["sources"]) == (["a"], ["c"])
    shown = site("matrix", "gpt")
    assert "heal from c: step 100 in a" in shown.out and "file-0.sea" in shown.out


def test_a_store_that_does_not_answer_is_not_ok(site: DemoSite) -> None:
    """Its rows are not there, and what is left of the table is green."""
    site.commit(100)
    site.good("verify", "gpt")
    (site.folder / "a").rename(site.folder / "unmounted")
    said = site("matrix", "gpt", "--json")
    assert said.code == said.document["exit_code"] == 3
    assert {copy["store"] for copy in said.document["copies"]} == {"c"} and set(cells(said.document, "c").values()) == {"ok"}
    assert "is not there" in said.document["silent"]["a"] and "store a did not answer" in site("matrix", "gpt").out
    (site.folder / "unmounted").rename(site.folder / "a")
    back = site("matrix", "gpt", "--json")
    assert back.code == 0 and back.document["silent"] == {}


@pytest.mark.parametrize("store", ["a", "c"])
def test_a_copy_that_was_proved_and_is_gone_now_is_not_ok(site: DemoSite, store: str) -> None:
    """The proof has not lapsed, but the store was asked just now."""
    sealing = site.commit(100)
    site.good("verify", "gpt")
    shutil.rmtree(site.sealing_folder(store, sealing))
    said = site("matrix", "gpt", "--json")
    assert said.code == 3 and cells(said.document, store)["timeliness"] == "unknown"
    assert [(call["response"], call["stores"]) for call in said.document["calls"]] == [("prove", [store])]
    site("verify", "gpt")
    site.good("respond", "gpt")
    site.good("verify", "gpt")
    assert site("matrix", "gpt").code == 0


def test_no_good_copy_left_is_an_incident(site: DemoSite) -> None:
    sealing = site.commit(100)
    for store in ("a", "c"):
        flip(site.sealing_folder(store, sealing) / "file-0.sea")
    assert site("verify", "gpt").code == 4
    calls = site("matrix", "gpt", "--json").document["calls"]
    assert calls[0]["response"] == "incident" and calls[0]["stores"] == ["a", "c"]


def test_the_matrix_of_a_moment_is_what_was_known_then(site: DemoSite) -> None:
    sealing = site.commit(100)
    site.good("verify", "gpt")
    before = datetime.now(UTC)
    flip(site.sealing_folder("a", sealing) / "file-0.sea")
    assert site("verify", "gpt", "--store", "a").code == 4
    then = site("matrix", "gpt", "--at", before.isoformat(), "--json")
    assert cells(then.document, "a")["file"] == "ok"
    assert cells(site("matrix", "gpt", "--json").document, "a")["file"] == "failed"
    assert site("matrix", "gpt", "--at", "2020-01-01", "--json").document["copies"] == []
    late = site("matrix", "gpt", "--at", (before + timedelta(days=400)).isoformat(), "--json")
    assert cells(late.document, "c")["file"] == "stale"


def test_options_that_are_no_moment_or_no_checkpoint(site: DemoSite) -> None:
    site.commit(100)
    assert site("matrix", "gpt", "--at", "yesterday").code == 2
    assert site("matrix", "gpt", "--at", "9999-12-31T23:00:00-23:00").code == 2
    assert site("matrix", "gpt", "--step", "7").code == 2
    assert site("matrix", "unheard-of").code == 2


def test_the_newest_are_shown_and_all_on_request(site: DemoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.cli.matrix._NEWEST", 1)
    site.commit(100)
    site.commit(200)
    assert {copy["step"] for copy in site("matrix", "gpt", "--json").document["copies"]} == {200}
    assert {copy["step"] for copy in site("matrix", "gpt", "--all", "--json").document["copies"]} == {100, 200}
    assert {copy["step"] for copy in site("matrix", "gpt", "--step", "100", "--json").document["copies"]} == {100}
    assert "--all" in site("matrix", "gpt").out


def test_due_reads_what_was_never_read_and_then_nothing(site: DemoSite) -> None:
    site.commit(100)
    site.commit(200)
    done = site.good("verify", "gpt", "--due")
    assert sorted((copy["step"], copy["store"]) for copy in done["copies"]) == [(100, "a"), (100, "c"), (200, "a"), (200, "c")]
    assert done["due"]["planned"] == 4 and done["due"]["unpredicted"] == 4 and int(done["due"]["bytes"]) > 0
    again = site.good("verify", "gpt", "--due")
    assert again["copies"] == [] and not again["signed"] and again["due"]["planned"] == 0
    assert site("verify", "gpt", "--due").out.count("nothing is due") == 1
    assert site("matrix", "gpt", "--json").code == 0


def test_due_within_a_budget_goes_on_next_time_and_knows_what_it_costs(site: DemoSite) -> None:
    for step in (100, 200, 300):
        site.commit(step)
    first = site.good("verify", "gpt", "--due", "--budget", "1", "--level", "L2")
    assert len(first["copies"]) == 1 and len(first["due"]["postponed"]) == 5
    second = site.good("verify", "gpt", "--due", "--level", "L2")
    assert len(second["copies"]) == 5
    assert second["due"]["unpredicted"] < 5, "one store was measured"
    assert float(second["due"]["predicted_seconds"]) >= 0


def test_due_and_its_options(site: DemoSite) -> None:
    site.commit(100)
    assert site("verify", "gpt", "--due", "--step", "100").code == 2
    assert site("verify", "gpt", "--due", "--all").code == 2
    assert site("verify", "gpt", "--budget", "1TB").code == 2
    assert site("verify", "gpt", "--due", "--budget", "1Tb").code == 2


def test_a_copy_that_is_still_being_filled_is_not_due(site: DemoSite) -> None:
    sealing = site.commit(100)
    for receipt in site.sealing_folder("c", sealing).glob("receipt-*.json"):
        receipt.unlink()
    assert [copy["store"] for copy in site.good("verify", "gpt", "--due")["copies"]] == ["a"]


def test_what_was_found_is_signed_although_something_stops_the_command(site: DemoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the third copy; a failure is not even kept for the end."""
    sealing = site.commit(100)
    site.commit(200)
    flip(site.sealing_folder("a", sealing) / "file-0.sea")
    real = proof_desk.ProofDesk.add
    taken = []

    def add(self: proof_desk.ProofDesk, proofs: Any) -> None:
        if len(taken) == 2:
            raise KeyboardInterrupt
        taken.append(proofs)
        real(self, proofs)
        assert self.signed > 0, "the first failed, the second waits for its minute"

    monkeypatch.setattr(proof_desk.ProofDesk, "add", add)
    assert site("verify", "gpt", "--all").code == 130
    monkeypatch.undo()
    found = site("matrix", "gpt", "--all", "--json").document
    assert cells(found, "a")["file"] == "failed" and cells(found, "c")["file"] == "ok"
    assert cells(found, "a", 200)["file"] == "unknown"


def test_proofs_that_are_missing_come_back_while_more_are_signed(site: DemoSite) -> None:
    site.commit(100)
    site.good("verify", "gpt")
    for batch in (site.folder / "c/runs/gpt/proofs").glob("*/*.json"):
        batch.unlink()
    said = site("verify", "gpt", "--json")
    assert said.code == 0 and "came back from a mirror" in said.err
    assert site("matrix", "gpt", "--json").code == 0


def test_mirror_brings_proofs_both_ways(site: DemoSite) -> None:
    site.commit(100)
    site.good("verify", "gpt")
    for batch in (site.folder / "a/runs/gpt/proofs").glob("*/*.json"):
        batch.unlink()
    assert site.good("log", "mirror", "gpt")["mirrors"]["a"]["proofs"] == 1
    for batch in (site.folder / "c/runs/gpt/proofs").glob("*/*.json"):
        batch.unlink()
    assert site.good("log", "mirror", "gpt")["proofs_brought_back"] == 1
    for store in ("a", "c"):
        for batch in (site.folder / store / "runs/gpt/proofs").glob("*/*.json"):
            batch.unlink()
    lost = site("log", "mirror", "gpt", "--json")
    assert lost.code == 10 and len(lost.document["proofs_lost"]) == 1
