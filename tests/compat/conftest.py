"""These tests run one at a time, whichever process they are in: most have a server of Spark Connect."""

import pytest


@pytest.fixture(autouse=True)
def _alone(only_server: None) -> None:
    """Wait for the others."""
