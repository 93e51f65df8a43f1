"""Fixtures for all rooms."""

pytest_plugins = ("tests.servers",)
