"""Receipts and chains of proofs from ``documents.json``: each is read, or refused for the right reason."""

import json
from typing import Any

import pytest

from seawall.errors import SeawallError
from seawall.testing.memory import MemoryStore
from seawall.vault.receipt import parse_receipt
from seawall.verify.proofs import proof_key, read_chain
from tests.vault.readers import COPIES, FOLDER, INDEX, keys_of, outcome_of

DOCUMENTS: dict[str, Any] = json.loads((FOLDER / "documents.json").read_text())
VERIFIERS = keys_of("verifiers")
SPEAKERS = {**keys_of("writers"), **keys_of("operators"), **VERIFIERS}


@pytest.mark.parametrize("vector", DOCUMENTS["receipts"], ids=lambda vector: vector["name"])
def test_receipts(vector: dict[str, Any]) -> None:
    copy, place = COPIES["plain"], DOCUMENTS["store"]

    def read() -> None:
        receipt = parse_receipt(vector["stored"].encode(), SPEAKERS.get, "receipt")
        receipt.check_place(INDEX["run"], bytes.fromhex(copy["sealing"]), copy["manifest"], place, 1, "receipt")

    assert outcome(read) == vector["expect"]


@pytest.mark.parametrize("vector", DOCUMENTS["proofs"], ids=lambda vector: vector["name"])
def test_chains_of_proofs(vector: dict[str, Any]) -> None:
    verifier = next(iter(VERIFIERS))
    store = MemoryStore()
    for number, stored in enumerate(vector["stored"], 1):
        if stored is not None:
            store.objects[proof_key(INDEX["run"], verifier, number)] = stored.encode()

    def read() -> None:
        assert read_chain(store, INDEX["run"], verifier, VERIFIERS.get).seq == vector["seq"]

    assert outcome(read) == vector["expect"]


def outcome(read: Any) -> str:
    try:
        read()
    except SeawallError as error:
        assert error.where
        return outcome_of(error)
    return "ok"
