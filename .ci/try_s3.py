"""Record to an S3 server on this machine, and read it back: `python .ci/try_s3.py`.

It needs `pip install . s3fs "moto[server]"`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

CLIENT = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}

TRAINING = """
import torch
from torchgraph_explorer import watch

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
with watch(model, backend="record", logdir="s3://bucket/runs", run="first", log_freq=2, verbose=False) as watcher:
    for step in range(6):
        model(torch.randn(2, 3)).sum().backward()
        watcher.log({"loss": 1.0 / (step + 1)})
"""


def main() -> None:
    """Train, then look at the run with `torchgraph info` and `torchgraph serve`."""
    port = free_port()
    moto = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)])
    try:
        environment = {**os.environ, **CLIENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        wait_for(f"http://127.0.0.1:{port}/")
        make = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
        urllib.request.urlopen(make).close()
        subprocess.run([sys.executable, "-c", TRAINING], env=environment, check=True, timeout=300)
        look(environment)
    finally:
        moto.terminate()
        moto.wait(30)


def look(environment: dict[str, str]) -> None:
    """Raise an AssertionError unless both commands find the run with its three steps."""
    torchgraph = [sys.executable, "-m", "torchgraph_explorer.cli"]
    info = [*torchgraph, "info", "s3://bucket/runs/first", "--json"]
    told = json.loads(subprocess.run(info, env=environment, check=True, timeout=300, capture_output=True).stdout)
    assert [model["steps"] for model in told["models"]] == [3], told
    serve = [*torchgraph, "serve", "s3://bucket/runs", "--port", "0", "--no-browser"]
    with subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().split()[-1].rstrip("/")
            with urllib.request.urlopen(f"{address}/api/runs", timeout=300) as answer:
                runs = json.load(answer)["runs"]
        finally:
            server.terminate()
    assert [(one["run"], one["error"]) for one in runs] == [("first", None)], runs
    print("recorded to S3, and read from there")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_for(address: str) -> None:
    """Wait until a server answers there, for two minutes at most."""
    until = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(address, timeout=10).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":
    main()
