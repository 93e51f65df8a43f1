"""Folders of other systems that are recognised and not ours: named, so that nobody wonders, and never called corrupt."""

from seawall.checkpoint.tree import Folder


def foreign_folder(folder: Folder) -> str:
    """What system a folder is of, or empty. Only names are looked at."""
    names = set(folder.entries)
    tops = {name.partition("/")[0] for name in names}
    if tops & {"_CHECKPOINT_METADATA", "manifest.ocdbt", "_METADATA", "_sharding", "commit_success.txt"} or any(
        ".orbax-checkpoint-tmp" in top for top in tops
    ):
        return "an Orbax checkpoint"
    if any("manifest.ocdbt" in name.split("/") or ".orbax-checkpoint-tmp" in name for name in names):
        return "an Orbax checkpoint"
    if "saved_model.pb" in tops:
        return "a TensorFlow SavedModel"
    if "checkpoint" in tops and any(top.endswith(".index") for top in tops):
        return "a TensorFlow checkpoint"
    if any(name.endswith((".zarray", ".zgroup", "zarr.json")) for name in names):
        return "a zarr store"
    if ".orbax-checkpoint-tmp" in folder.path.rpartition("/")[2]:
        return "an Orbax checkpoint"
    return ""
