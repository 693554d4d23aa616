"""What runs a server of Spark Connect runs alone: they all listen at the same port."""

import fcntl
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def only_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Wait until no other process of the tests has a server."""
    with (tmp_path_factory.getbasetemp().parent / "spark-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
