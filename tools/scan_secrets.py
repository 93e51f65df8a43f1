"""Looks for secrets in what git would commit, with the detectors of detect-secrets, and exits 1 when it finds one.

    python tools/scan_secrets.py            every tracked or new file of this checkout
    python tools/scan_secrets.py PATH...    these files

No baseline file: a baseline of accepted findings grows until nobody reads it, and its line numbers conflict in every
merge. What is allowed is named in ALLOWED below with its reason, or on the line itself
(``pragma: allowlist secret``, in a comment). The value that was found is never printed.
"""

import subprocess
import sys
from pathlib import Path, PurePosixPath

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import transient_settings

# Detectors of fixed formats only. The entropy and keyword detectors take digests, test vectors and variable names
# called `key` for secrets: in a project about keys they would teach everybody to ignore the scan.
DETECTORS = (
    "ArtifactoryDetector",
    "AWSKeyDetector",
    "AzureStorageKeyDetector",
    "BasicAuthDetector",
    "GitHubTokenDetector",
    "GitLabTokenDetector",
    "JwtTokenDetector",
    "NpmDetector",
    "OpenAIDetector",
    "PrivateKeyDetector",
    "PypiTokenDetector",
    "SlackDetector",
    "StripeDetector",
)

# Folder (relative to the checkout) → why keys may lie there.
ALLOWED = {
    "tests/vectors": "the published test vectors of the format hold the keys they are opened with",
}


def is_allowed(path: str) -> bool:
    parents = PurePosixPath(path).parents
    return any(PurePosixPath(folder) in parents for folder in ALLOWED)


def files_git_would_commit(checkout: Path) -> list[str]:
    """Names of tracked files and of new ones that no ignore rule covers, relative to ``checkout``."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=checkout,
        check=True,
        capture_output=True,
    ).stdout
    return sorted(name for name in listing.decode().split("\0") if name)


def findings(paths: list[Path]) -> list[tuple[str, int, str]]:
    """Each finding as (file, line, kind of secret), in order."""
    found = []
    # No verification: a scan must never send what it found to the service that it belongs to.
    with transient_settings({"plugins_used": [{"name": name} for name in DETECTORS]}):
        for path in paths:
            if path.is_file() and not path.is_symlink():
                found += [(str(path), secret.line_number, secret.type) for secret in scan_file(str(path))]
    return sorted(found)


def main(arguments: list[str]) -> int:
    if arguments:
        paths = [Path(argument) for argument in arguments]
    else:
        checkout = Path(__file__).resolve().parent.parent
        paths = [checkout / name for name in files_git_would_commit(checkout) if not is_allowed(name)]
    found = findings(paths)
    for name, line, kind in found:
        print(f"{name}:{line}: {kind}")
    if found:
        print(f"{len(found)} possible secret(s). Take them out, and revoke them if they were ever real.")
        return 1
    print(f"no secrets in {len(paths)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
