"""What several tests need is made in one process, though tests run in several."""

from __future__ import annotations

import pytest

from tests.conftest import shares_with_its_file


@pytest.fixture(scope="module")
def made_once() -> list[int]:
    return []


@pytest.mark.usefixtures("made_once")
def test_tests_that_share_what_is_made_once_a_file_are_of_one_group(request: pytest.FixtureRequest) -> None:
    sharing = [item for item in request.session.items if shares_with_its_file(item)]
    assert request.node in sharing
    assert [item.nodeid for item in sharing if not any(map(item.get_closest_marker, ("browser", "xdist_group")))] == []
    is_grouped = request.config.getoption("loadgroup", default=False)
    assert not is_grouped or "@tests test_groups" in request.node.nodeid


def test_tests_that_share_nothing_are_of_none(request: pytest.FixtureRequest) -> None:
    assert not shares_with_its_file(request.node)
