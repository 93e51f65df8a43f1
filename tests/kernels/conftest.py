"""Where the simulator keeps what it compiled."""

from pathlib import Path

import pytest

from tests.kernels.simulator.build import compiler


@pytest.fixture(scope="session")
def compiled(request: pytest.FixtureRequest) -> Path:
    """A folder that outlives the session: an unchanged text is compiled once."""
    if compiler() is None:
        pytest.skip("no g++ on this machine: the kernels are not run in the simulator")
    return Path(request.config.cache.mkdir("kernels"))
