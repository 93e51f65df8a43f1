"""What a probe found survives being kept, and nothing else passes for it."""

import json

import pytest

from seawall.errors import ConfigurationError
from seawall.stores.base import Capabilities
from seawall.stores.capabilities import capabilities_as_json, capabilities_from_json

FOUND = Capabilities(conditional_put=True, full_object_crc=True, server_time=True, reasons=("versions: the bucket keeps none",))


def test_there_and_back() -> None:
    assert capabilities_from_json(json.loads(json.dumps(capabilities_as_json(FOUND)))) == FOUND


@pytest.mark.parametrize(
    "change",
    [
        {"conditional_put": None},
        {"conditional_put": "yes"},
        {"conditional_put": 1},
        {"new_claim": True},
        {"reasons": "none"},
        {"reasons": [1]},
    ],
)
def test_anything_else_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        capabilities_from_json({**capabilities_as_json(FOUND), **change})
    with pytest.raises(ConfigurationError):
        capabilities_from_json(None)
    with pytest.raises(ConfigurationError):
        capabilities_from_json({"conditional_put": True})
