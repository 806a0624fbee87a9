"""The first statement that writes runs alone."""

from __future__ import annotations

import threading

import pytest

from penstock.spark.startup.first_statement import FirstStatement


def test_first_alone() -> None:
    """The others wait for the first, and for no other."""
    statement = FirstStatement(seconds=60)
    said: list[str] = []
    begun, may_end = threading.Event(), threading.Event()

    def first() -> None:
        with statement.alone():
            begun.set()
            may_end.wait(10)
            said.append("first")

    def later() -> None:
        with statement.alone():
            said.append("later")

    threads = [threading.Thread(target=first), *(threading.Thread(target=later) for _ in range(3))]
    threads[0].start()
    begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join(10)
    assert said == ["first", "later", "later", "later"]


def test_first_alone_not_for_long() -> None:
    statement = FirstStatement(seconds=0.01)
    passed = threading.Event()

    def later() -> None:
        with statement.alone():
            passed.set()

    with statement.alone():
        thread = threading.Thread(target=later)
        thread.start()
        assert passed.wait(10)
        assert statement._done.is_set(), "the next one would wait as long again"
    thread.join(10)


def test_a_first_that_fails_holds_nobody() -> None:
    statement = FirstStatement(seconds=60)
    with pytest.raises(ValueError, match="wrong"), statement.alone():
        raise ValueError("wrong")
    with statement.alone():
        pass
