"""Shared by the tests of galleries."""

import time
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session", autouse=True)
def brief_naps():
    """pymilvus sleeps half a second before it asks whether a new collection has its index: a second for every gallery."""
    try:
        from pymilvus.client import grpc_handler
    except ImportError:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpc_handler, "time", SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(seconds / 50)))
        yield
