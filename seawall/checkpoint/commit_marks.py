"""The file whose presence says that a save finished: which it is for each layout, and what it says about epoch and step."""

from seawall.checkpoint import strict_json
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.layouts.sharded import indexes
from seawall.checkpoint.look import Look
from seawall.errors import SeawallError

MAX_MARK = 1 << 20


def note_commit_mark(look: Look) -> None:
    """Set ``commit_mark`` and ``epoch``. A mark of seawall's own training (``_COMMITTED``) goes before the layout's."""
    found = look.found
    if look.folder.has(look.mark):
        found.commit_mark = look.mark
        _read_mark(look)
    elif found.layout == "hf-trainer" and look.folder.has("trainer_state.json"):
        found.commit_mark = "trainer_state.json"
    elif found.layout in ("dcp", "megatron") and look.folder.has(".metadata"):
        found.commit_mark = ".metadata"
    elif found.layout in ("safetensors-sharded", "torch-sharded"):
        listed = indexes(look.folder.names())
        found.commit_mark = listed[0] if listed else None


def _read_mark(look: Look) -> None:
    """The mark may be empty, or JSON such as ``{"epoch": 3, "step": 1000}``."""
    try:
        raw = look.folder.read(look.mark, MAX_MARK)
        said = strict_json.parse(raw, look.mark) if raw.lstrip()[:1] == b"{" else None
    except SeawallError as error:
        look.found.add(Verdict.CORRUPT, f"the commit mark cannot be read: {error.what}", look.mark)
        return
    if not isinstance(said, dict):
        return
    epoch, step = said.get("epoch"), said.get("step")
    digest = said.get("tensor_sums")
    if isinstance(digest, str):
        look.found.sums_digest = digest
    if _is_count(epoch):
        look.found.epoch = epoch
    if _is_count(step):
        if look.found.step is not None and look.found.step != step:
            look.found.add(Verdict.CORRUPT, f"the commit mark says step {step}, the files say {look.found.step}: a mix of saves", look.mark)
        look.found.step = step if look.found.step is None else look.found.step


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
