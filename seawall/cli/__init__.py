"""The seawall command, one file a command group."""
