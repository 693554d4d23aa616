"""Waiting: for what comes about, and no longer than that may take."""

import subprocess
import sys

import pytest

from wjoin.testing.waiting import free_ports, until

pytestmark = pytest.mark.long


def test_what_comes_about_is_returned():
    answers = iter([None, 0, "here"])
    assert until(lambda: next(answers), every_seconds=0) == "here"


def test_in_vain():
    with pytest.raises(AssertionError, match=r"in vain for 0\.01 s: a sign\nsilence"):
        until(lambda: False, "a sign", said=lambda: "silence", patience_seconds=0.01, every_seconds=0)


def test_a_process_that_ends_is_not_waited_for():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        with pytest.raises(AssertionError, match="the process has ended before: a sign"):
            until(lambda: False, "a sign", process=process)
        answers = iter([False, True])
        assert until(lambda: next(answers), "its last sign", process=process)


def test_ports_differ():
    assert len(set(free_ports(20))) == 20
