"""A run that went on for weeks: commits, proofs of every kind and quarantines, as facts and as real signed objects in the stores of a desk.

Which copy came to what follows from its number, so that a test knows what to look for without looking first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from seawall.cli.judged_run import ASKED_CHECKPOINTS
from seawall.cli.site import Site
from seawall.clock import utc_text
from seawall.log.bodies import Body, Commit, ProofHead, ProofHeads, Quarantine
from seawall.log.entries import Entry, entry_key, operation_id, sign_entry
from seawall.log.state import CommitRecord, Mark, RunState
from seawall.vault.identity import sealing_folder
from seawall.vault.receipt import receipt_name
from seawall.vault.signing import SigningKey
from seawall.verify import evidence
from seawall.verify.levels import Level
from seawall.verify.proofs import FAILED, OK, Proof, append_proofs
from tests.log.actors import KEYS, hexed
from tests.protect.command_line import RUN, Desk

EVERY = timedelta(days=6)
"""How often a copy is read back in this run."""


@dataclass(frozen=True)
class LongRun:
    """``count`` checkpoints, one every ``spacing`` until ``now``, in stores ``a`` and ``c``, by their ids."""

    count: int
    now: datetime
    stores: Mapping[str, str]
    spacing: timedelta = timedelta(hours=1)

    def step(self, number: int) -> int:
        return 100 * (number + 1)

    def begun(self, number: int) -> datetime:
        """When checkpoint ``number`` was committed."""
        return self.now - (self.count - number) * self.spacing

    def damaged(self, number: int) -> bool:
        """Its copy in c failed two days ago, if it was there."""
        return number % 97 == 5

    def forgotten(self, number: int) -> bool:
        """Its copy in c was never proved."""
        return number % 89 == 3

    def lapsed(self, number: int) -> bool:
        """Nothing was proved of it in the last ten days."""
        return number % 61 == 7

    def odd(self, number: int) -> bool:
        """It has values that are not finite, and was quarantined for that."""
        return number % 211 == 9

    def sealing(self, number: int) -> str:
        return hexed(f"long {number}", 16)

    def commits(self) -> list[tuple[datetime, Commit]]:
        found = []
        for number in range(self.count):
            sealing, at = self.sealing(number), self.begun(number)
            body = Commit(
                sealing, self.step(number), 1, hexed(f"manifest {sealing}", 32), hexed("keys", 32), self.stores["a"],
                hexed(f"receipt {sealing}", 32), utc_text(at),
            )  # fmt: skip
            found.append((at + timedelta(seconds=1), body))
        return found

    def quarantines(self) -> list[tuple[datetime, Quarantine]]:
        reason = "values: 7 values are NaN or infinite, none before"
        return [
            (self.begun(number) + timedelta(minutes=40), Quarantine(self.sealing(number), reason))
            for number in range(self.count)
            if self.odd(number)
        ]

    def proofs(self) -> list[Proof]:
        """In the order of their moments."""
        found = [proof for number, (_, commit) in enumerate(self.commits()) for proof in self._proofs(number, commit)]
        return sorted(found, key=lambda proof: proof.at)

    def _proofs(self, number: int, commit: Commit) -> list[Proof]:
        at, found = self.begun(number) + timedelta(minutes=20), []
        last = self.now - timedelta(days=10) if self.lapsed(number) else self.now
        task = f"seawall_verify/scheduled__{at:%Y-%m-%dT%H:00:00+00:00}/check/{number % 16}/1"
        counts = {
            evidence.KEYS: "291", evidence.KEYS_MISSING: "0", evidence.KEYS_NEW: "0", evidence.COMPARED_WITH: self.sealing(number - 1),
            evidence.FLOATS: "7241732096", evidence.NONFINITE: "7" if self.odd(number) else "0", evidence.ZEROS: "72417",
            evidence.SATURATED: "0", evidence.WRAPS: "keyring 5d1e, recovery 90aa", evidence.TASK: task,
        }  # fmt: skip
        turn = 0
        while at <= last:
            if turn % 4 == 0:
                found.append(self._proof(commit, "a", Level.L4, at, counts))
            found.append(self._proof(commit, "a", Level.L2, at, {evidence.TASK: task}))
            if not self.forgotten(number):
                found.append(self._proof(commit, "c", Level.L2, at + timedelta(minutes=5), {evidence.TASK: task}))
            at, turn = at + EVERY, turn + 1
        if self.damaged(number) and self.begun(number) < self.now - timedelta(days=2):
            damage = {"damage": "file-3.sea: record 17 of 512 is not what was signed", evidence.TASK: task}
            found = [proof for proof in found if proof.store != self.stores["c"] or proof.at < utc_text(self.now - timedelta(days=2))]
            found.append(replace(self._proof(commit, "c", Level.L2, self.now - timedelta(days=2), damage), result=FAILED))
        return found

    def _proof(self, commit: Commit, store: str, level: Level, at: datetime, found: dict[str, str]) -> Proof:
        return Proof(commit.sealing, commit.manifest, self.stores[store], level, OK, "read whole", utc_text(at), found)

    def state(self) -> RunState:
        """The fold, without a log to fold it from."""
        state = RunState(RUN, KEYS.root.public, seq=self.count)
        for seq, (at, body) in enumerate(self.commits(), 1):
            state.commits[body.sealing] = CommitRecord(
                body.sealing, body.step, 1, 1, body.manifest, body.keys, body.store, body.receipt, body.stored_at, seq,
                hexed(f"op {seq}", 16), KEYS.writer.key_id, utc_text(at),
            )  # fmt: skip
        for at, quarantine in self.quarantines():
            op = hexed(f"quarantine {quarantine.sealing}", 16)
            seq = state.commits[quarantine.sealing].seq
            state.marks[op] = Mark(op, quarantine.sealing, quarantine.reason, seq, KEYS.verifier.key_id, utc_text(at))
            state.quarantined[quarantine.sealing] = (op,)
        return state


def receipt_of(desk: Desk, run: LongRun, number: int, store: str) -> Path:
    """Where a store has the receipt of a checkpoint's copy."""
    return desk.store(store) / sealing_folder(RUN, bytes.fromhex(run.sealing(number))) / receipt_name(run.stores[store], 1)


def write_long_run(desk: Desk, count: int, now: datetime, spacing: timedelta = timedelta(hours=1)) -> LongRun:
    """Put such a run into the empty log of a desk, and into its mirror.

    Of its sealings only receipts of the newest are stored, and only their names matter: pages read log and proofs, and ask for these.
    """
    site = Site(desk.config)
    run = LongRun(count, now, {name: site.place(name).id for name in ("a", "c")}, spacing)
    view, _ = site.view(RUN)
    keys = {role: site.signing_key(role) for role in ("writer", "verifier")}
    resolve = view.state.resolver("verifier")
    proofs = run.proofs()
    heads = []
    for begin in range(0, len(proofs), 5000):
        chain = append_proofs(site.coordination.store, RUN, proofs[begin : begin + 5000], keys["verifier"], resolve)
        heads.append(ProofHead(chain.verifier, chain.seq, chain.digest))
    dated: list[tuple[datetime, Body, SigningKey]] = [(at, body, keys["writer"]) for at, body in run.commits()]
    dated += [(at, body, keys["verifier"]) for at, body in run.quarantines()]
    dated.sort(key=lambda item: item[0])
    dated += [(now, ProofHeads((head,)), keys["verifier"]) for head in heads]
    seq, prev = view.seq, view.digest
    for at, body, key in dated:
        seq += 1
        op = operation_id("long run", str(seq))
        signed = sign_entry(Entry(RUN, seq, prev, op, 1, utc_text(at), body), key)
        prev = signed.digest
        path = desk.store(site.config.coordination.store) / entry_key(RUN, seq)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(signed.stored)
    for number in range(max(0, count - ASKED_CHECKPOINTS), count):
        for name in run.stores:
            receipt = receipt_of(desk, run, number, name)
            receipt.parent.mkdir(parents=True)
            receipt.write_bytes(b"{}")
    site.close()
    desk("log mirror", RUN)
    return run
