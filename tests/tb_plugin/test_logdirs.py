"""Which folders TensorBoard was pointed at, and what runs are called there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing.data_ingester import _parse_event_files_spec

from torchgraph_tensorboard.logdirs import Logdir, logdirs_of

SPECS = {
    "one": "/a/b",
    "several": "/a,/b/c",
    "groups": "new:/a,old:/b",
    "a colon in a path": "/a:b/c",
    "a colon after the group": "new:/a:b",
    "a url": "memory://a/b,s3://bucket",
    "a group of a url": "new:memory://a",
    "a home": "~/runs",
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_logdir_spec_means_what_it_means_to_tensorboard(spec: str) -> None:
    found = logdirs_of(SimpleNamespace(logdir="", logdir_spec=spec))
    assert {logdir.path: logdir.group for logdir in found} == _parse_event_files_spec(spec)


def test_a_logdir_is_one_root_whatever_is_in_its_name() -> None:
    assert logdirs_of(SimpleNamespace(logdir="/a,b:c", logdir_spec="")) == (Logdir("/a,b:c"),)


def test_a_context_without_flags_has_its_logdir() -> None:
    assert logdirs_of(None, "/a") == (Logdir("/a"),)


@pytest.mark.parametrize(
    ("logdir", "run", "name"),
    [
        pytest.param(Logdir("/a"), "x/y", "x/y", id="alone"),
        pytest.param(Logdir("/a", "old"), "x", "old/x", id="in a group"),
        pytest.param(Logdir("/a", "old"), ".", "old/.", id="the folder itself"),
    ],
)
def test_runs_are_called_as_tensorboard_calls_them(logdir: Logdir, run: str, name: str) -> None:
    assert logdir.name(run) == name
    assert logdir.below(name) == run


def test_a_run_of_another_group_is_not_ours() -> None:
    assert Logdir("/a", "old").below("older/x") is None
