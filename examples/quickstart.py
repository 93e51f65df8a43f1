"""The whole idea in a minute: a checkpoint is sealed, stored twice, proved, damaged, found out, and restored.

    make quickstart        (or: python examples/quickstart.py)

Trains a small model for a few steps, starts a real S3 server on this machine, and then uses nothing but the ``seawall``
command. Exits 0 only if everything held. Leaves nothing behind.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

STEPS = 20


def train(run_folder: Path) -> Path:
    """A byte-level next-byte model on Python's own sources; its state as a distributed checkpoint and as safetensors."""
    import torch
    import torch.distributed.checkpoint as dcp

    torch.manual_seed(20261129)
    text = Path(os.__file__).read_bytes()[:200_000]
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    model = torch.nn.Sequential(
        torch.nn.Embedding(256, 256), torch.nn.Flatten(), torch.nn.Linear(16 * 256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.tensor(0.0)
    for _ in range(STEPS):
        at = torch.randint(0, len(data) - 17, (64,))
        context = torch.stack([data[i : i + 16] for i in at.tolist()])
        loss = torch.nn.functional.cross_entropy(model(context), data[at + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    step_folder = run_folder / f"step_{STEPS:08d}"
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": STEPS}
    with quiet():
        dcp.save(state, checkpoint_id=str(step_folder), no_dist=True)
    write_safetensors(step_folder / "model.safetensors", model.state_dict())
    (step_folder / "_COMMITTED").write_text(json.dumps({"step": STEPS, "loss": f"{loss.item():.4f}"}))
    print(f"   trained {STEPS} steps, loss {loss.item():.3f}, saved {sum(f.stat().st_size for f in step_folder.iterdir()) / 2**20:.1f} MiB")
    return step_folder


def write_safetensors(path: Path, tensors: dict) -> None:
    """The safetensors format by hand (length, JSON header, bytes), so that this needs torch alone."""
    header, bodies, at = {}, [], 0
    for name, tensor in tensors.items():
        body = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(body)]}
        bodies.append(body)
        at += len(body)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(bodies))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Torch warns that there is no process group; there is none on purpose."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def seawall(*arguments: str, expect: int = 0) -> dict:
    """Run one command as a person would, and read its JSON."""
    program = Path(sysconfig.get_path("scripts")) / "seawall"
    print("   $ seawall " + " ".join(arguments), flush=True)
    done = subprocess.run([str(program), *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != expect:
        sys.exit(f"seawall {arguments[0]} ended with {done.returncode}, not {expect}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def digests(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.rglob("*")) if f.is_file()}


def damage_one_byte(copy: Path) -> Path:
    """What a failing disk does: one bit of one stored byte, in the middle of the largest object."""
    victim = max(copy.rglob("file-*.sea"), key=lambda path: path.stat().st_size)
    with victim.open("r+b") as file:
        file.seek(victim.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    return victim


def main() -> None:
    started = time.monotonic()
    from seawall.testing.seaweedfs import SeaweedFS

    with tempfile.TemporaryDirectory(prefix="seawall-quickstart-") as scratch, contextlib.ExitStack() as stack:
        here = Path(scratch)
        os.chdir(here)
        print("1. A model trains and saves a checkpoint.")
        saved = train(here / "checkpoints")
        print("2. A real S3 server starts on this machine.")
        server = stack.enter_context(SeaweedFS(here / "s3"))
        os.environ.update(
            AWS_ACCESS_KEY_ID=server.keys.access_key_id, AWS_SECRET_ACCESS_KEY=server.keys.secret_access_key, AWS_REGION="us-east-1"
        )
        server.create_bucket("checkpoints")
        print("3. Four commands: keys and stores, the run, the copies, the proof.")
        seawall("init", "--store", "a=s3://checkpoints/demo", "--endpoint", f"a={server.endpoint}", "--store", f"c=file://{here}/site-c")
        seawall("run", "open", "demo", "--path", "checkpoints")
        synced = seawall("sync", "demo")
        proved = seawall("verify", "demo")
        levels = {copy["store"]: copy["level"] for copy in proved["copies"]}
        print(f"   step {synced['step']} is in {', '.join(synced['copies'])}; proved: {levels}")
        check(synced["copies"] == ["a", "c"] and set(levels.values()) == {"L4"}, "both copies are proved to L4")
        print("4. One bit of one stored byte rots in store c.")
        damage_one_byte(here / "site-c")
        found = seawall("verify", "demo", expect=4)
        damages = [damage for copy in found["copies"] for damage in copy["damages"]]
        for damage in damages:
            print(f"   found: {damage['file']} record {damage['records']} in {damage['object']}")
        check(len({damage["file"] for damage in damages}) == 1 and bool(damages[-1]["records"]), "verify names the file and the record")
        print("5. The checkpoint is restored from the copy that is proved, and compared.")
        restored = seawall("restore", "demo", "restored")
        check(restored["store"] == "a", "the damaged copy was not used")
        check(digests(here / "restored") == digests(saved), "every byte came back")
    print(f"All of it held, in {time.monotonic() - started:.0f} s.")


def check(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"   FAILED: {what}")
    print(f"   ok: {what}")


if __name__ == "__main__":
    main()
