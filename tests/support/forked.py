"""Run work in a forked child, with a time limit, while another thread works."""

import os
import signal
import threading
import time
import traceback
from contextlib import contextmanager

from tests.support.waiting import PATIENCE


def in_child(work) -> int:
    """Do the work in a child and return its exit status: 0 where nothing was raised."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    return ended(child)


def ended(child: int) -> int:
    """Wait for a child and return its exit status; -SIGKILL for one that hung."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL
        time.sleep(0.002)


@contextmanager
def another_thread(work):
    """Have a thread do the work again and again."""
    ended, begun = threading.Event(), threading.Event()

    def again():
        while not ended.is_set():
            work()
            begun.set()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        assert begun.wait(PATIENCE)
        yield
    finally:
        ended.set()
        thread.join(PATIENCE)
