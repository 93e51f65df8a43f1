"""What Airflow is told about this distribution (entry point ``apache_airflow_provider``).

Imports nothing: every component reads it at its start.
"""

from typing import Any

_OPERATORS = ("runs", "sync", "verify", "matrix", "respond", "restore", "retention", "audit")


def get_provider_info() -> dict[str, Any]:
    """Connection type, operators, link and configuration, by Airflow's provider schema (``provider_info.schema.json``)."""
    return {
        "package-name": "seawall",
        "name": "Seawall",
        "description": "Disaster recovery for LLM training: encrypted, signed checkpoint copies whose restorability is proved.",
        "integrations": [{"integration-name": "Seawall", "external-doc-url": "https://github.com/seawall/seawall", "tags": ["software"]}],
        "operators": [{"integration-name": "Seawall", "python-modules": [f"seawall.operators.{name}" for name in _OPERATORS]}],
        "hooks": [{"integration-name": "Seawall", "python-modules": ["seawall.operators.store_hook"]}],
        "connection-types": [
            {
                "connection-type": "seawall_store",
                "hook-class-name": "seawall.operators.store_hook.SeawallStoreHook",
                "hook-name": "Seawall store",
                "ui-field-behaviour": {
                    "hidden-fields": ["login", "password", "port", "schema"],
                    "relabeling": {"host": "Store in seawall.toml"},
                    "placeholders": {"host": "a"},
                },
                "conn-fields": {
                    "aws_conn_id": {
                        "label": "Amazon connection",
                        "description": "Credentials for an S3 store; empty takes aws_conn_id of seawall.toml, or the usual AWS settings.",
                        "schema": {"type": ["string", "null"], "default": None},
                    },
                    "config": {
                        "label": "seawall.toml",
                        "description": "Its path on the worker; empty takes [seawall] config of Airflow's configuration.",
                        "schema": {"type": ["string", "null"], "default": None},
                    },
                },
            }
        ],
        "notifications": [f"seawall.operators.notifiers.{name}" for name in ("AlertmanagerNotifier", "DingTalkNotifier")],
        "extra-links": ["seawall.operators.links.CheckpointLink"],
        "config": {
            "seawall": {
                "description": "Where seawall's own configuration lies, and where its tasks run.",
                "options": {
                    "config": _option("Path of seawall.toml on every worker and on the API server; empty takes $SEAWALL_CONFIG."),
                    "restore_folder": _option("Restores go below this folder only, whoever asks; empty allows any absolute path."),
                    **{
                        f"{role}_{kind}": _option(f"{kind.capitalize()} of tasks that need {key}; empty takes Airflow's default.")
                        for role, key in _ROLES.items()
                        for kind in ("pool", "queue")
                    },
                },
            }
        },
    }


_ROLES = {
    "writer": "a writer's key",
    "verifier": "a verifier's key",
    "operator": "an operator's key",
    "restorer": "room for a checkpoint and a key that opens it",
}


def _option(description: str) -> dict[str, Any]:
    return {"description": description, "type": "string", "version_added": None, "example": None, "default": ""}
