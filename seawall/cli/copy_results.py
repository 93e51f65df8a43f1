"""What `seawall verify` says of each copy: levels, damaged objects, and the files and tensors in them."""

from typing import TYPE_CHECKING

from seawall.cli.output import say

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.protect.place import Place
    from seawall.vault.inventory import Inventory
    from seawall.verify.check import Damage, Finding

MAX_TENSORS = 100
"""Names in one damage."""
_SHOWN_TENSORS = 8


def result_of(site: "Site", view: "LogView", commit: "CommitRecord", place: "Place", findings: "list[Finding]") -> dict[str, object]:
    """What `--json` says of a copy that was checked."""
    from seawall.cli.file_names import any_inventory
    from seawall.verify.check import FAILED, OK

    proved = [finding.level.name for finding in findings if finding.result == OK]
    failed = [finding for finding in findings if finding.result == FAILED]
    damages = [damage for finding in failed for damage in finding.damages]
    inventory = any_inventory(site, view, commit, place) if damages else None
    return {
        "step": commit.step,
        "sealing": commit.sealing,
        "store": place.name,
        "result": FAILED if failed else OK,
        "level": proved[-1] if proved and not failed else None,
        "levels": {finding.level.name: finding.result for finding in findings},
        "damages": [_damage(damage, commit, place, inventory) for damage in damages],
        "why": "",
    }


def without_findings(commit: "CommitRecord", name: str, result: str, why: str) -> dict[str, object]:
    """A copy whose store does not answer is neither good nor bad, and one that was deleted is not missed."""
    return {
        "step": commit.step,
        "sealing": commit.sealing,
        "store": name,
        "result": result,
        "level": None,
        "levels": {},
        "damages": [],
        "why": why,
    }


def _damage(damage: "Damage", commit: "CommitRecord", place: "Place", inventory: "Inventory | None") -> dict[str, object]:
    from seawall.cli.file_names import names_in

    file = None if inventory is None else names_in(inventory).get(damage.object)
    tensors = [] if inventory is None or file is None else _tensors_in(damage, commit, place, inventory)
    return {"object": damage.object, "file": file, "records": list(damage.records), "tensors": tensors[:MAX_TENSORS], "why": damage.why}


def _tensors_in(damage: "Damage", commit: "CommitRecord", place: "Place", inventory: "Inventory") -> list[str]:
    """The tensors that have bytes in the damaged records; all of the file's where its frame is damaged, which all records depend on."""
    from seawall.errors import SeawallError
    from seawall.vault.header import HEADER_BYTES, parse_header
    from seawall.vault.identity import sealing_folder

    number = int(damage.object.removeprefix("file-").removesuffix(".sea"))
    whole = inventory.tensors_in(number, 0, inventory.files[number].size)
    if not damage.records:
        return whole
    key = sealing_folder(inventory.run, bytes.fromhex(commit.sealing)) + damage.object
    try:
        chunk = parse_header(place.store.get(key, 0, HEADER_BYTES), key).chunk_bytes
    except SeawallError:
        return whole
    damaged = {name for record in damage.records for name in inventory.tensors_in(number, record * chunk, (record + 1) * chunk)}
    return [name for name in whole if name in damaged]


def show_result(result: dict[str, object]) -> None:
    """The same for a person."""
    levels = result["levels"]
    assert isinstance(levels, dict)
    found = ", ".join(f"{level} {outcome}" for level, outcome in levels.items()) or f"{result['result']}, {result['why']}"
    say(f"step {result['step']} in {result['store']}: {found}")
    damages = result["damages"]
    assert isinstance(damages, list)
    for damage in damages:
        records = ", ".join(str(number) for number in damage["records"])
        say(f"  {damage['file'] or damage['object']}{' record ' + records if records else ''}: {damage['why']}")
        if damage["tensors"]:
            more = ", …" if len(damage["tensors"]) > _SHOWN_TENSORS else ""
            say(f"    tensors in it: {', '.join(damage['tensors'][:_SHOWN_TENSORS])}{more}")
