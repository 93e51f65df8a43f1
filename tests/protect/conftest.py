"""Checkpoint cases for this room: the folder is built once for the whole run."""

from tests.checkpoint.conftest import case_folder as case_folder
