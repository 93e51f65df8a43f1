"""Names that a checkpoint gives for its own files: relative, and never out of its folder."""


def inside(name: str) -> bool:
    """Whether a relative path stays in its folder whatever system reads it. Pure; links are judged where files are listed."""
    if not name or "\0" in name or name.startswith(("/", "\\")) or (len(name) > 1 and name[1] == ":" and name[0].isalpha()):
        return False
    return ".." not in name.replace("\\", "/").split("/")


def joined(below: str, name: str) -> str:
    """``name`` in the sub-folder ``below``."""
    return f"{below}/{name}" if below else name
