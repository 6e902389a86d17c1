"""A process that is forked from a training may call the watched model."""

from __future__ import annotations

import os
import signal
import threading

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch

MOST_SECONDS = 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    model, parent = nn.Linear(3, 2), os.getpid()
    asked, answered = threading.Event(), threading.Event()

    def is_logged(_step: int) -> bool:
        if os.getpid() == parent:
            asked.set()
            answered.wait(MOST_SECONDS)
        return True

    with watch(model, log_freq=is_logged, backend=Listening(), verbose=False):
        thread = threading.Thread(target=model, args=(torch.ones(1, 3),))
        thread.start()
        assert asked.wait(MOST_SECONDS)
        if (child := os.fork()) == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(MOST_SECONDS)
            try:
                model(torch.ones(1, 3))
            finally:
                os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answered.set()
        thread.join()
    assert ended == 0
