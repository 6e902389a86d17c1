"""Whether the process that recorded a session has ended, where this process can tell.

A process id means something only where it was given: until the machine starts again, and in one pid namespace, which a
container mostly has for itself. So the record says where that is, and a reader judges only if it is there, too.
"""

from __future__ import annotations

import os
import socket
from hashlib import sha256
from pathlib import Path

from torchgraph_explorer.schema import Session


def own_processes() -> str:
    """Where the ids of processes are those of this one: the same text in each of them; empty if that is not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  (it is no path)
    except (OSError, ValueError):  # not Linux, or a sandbox
        return ""
    # Hashed: a record may be published, and tells nothing of the machine.
    return sha256(f"{boot} {namespace}".encode()).hexdigest()[:16] if boot and namespace else ""


def host() -> str:
    """The name of this machine."""
    try:
        return socket.gethostname()
    except (OSError, UnicodeError):
        return "unknown"


def has_ended(session: Session) -> bool:
    """Whether the process that recorded `session` is gone. False where that cannot be told."""
    if not session.processes or session.pid <= 0 or session.host != host() or session.processes != own_processes():
        return False
    try:
        os.kill(session.pid, 0)  # asks only; on Windows, which never comes here, it would end the process
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's
        return False
    return False
