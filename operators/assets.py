"""Assets that connect training and the DAGs. They are names, not places: what an event says is in its ``extra``."""

from airflow.sdk import Asset

CHECKPOINT_READY = Asset(name="checkpoint_ready", group="seawall")
"""Training finished a checkpoint. ``extra`` may name the run; without it every run is looked at."""
SYNCED = Asset(name="seawall_synced", group="seawall")
"""A checkpoint was committed, or got one more copy. ``extra``: run, step, sealing."""
