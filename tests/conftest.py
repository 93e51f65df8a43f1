"""Fixtures for all rooms."""

import signal

pytest_plugins = ("tests.servers",)

# A shell without job control starts what runs in its background deaf to SIGINT, and children inherit that: then tests that interrupt a
# command would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
