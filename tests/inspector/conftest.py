"""A lace and an inspector over it, for every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inspector.visiting import Visitor, World, make_world
from lace.inspector.inspected import open_all
from lace.inspector.serving import Inspector, inspecting


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world") / "notes.lace")


@pytest.fixture(scope="session")
def inspector(world: World) -> Iterator[Inspector]:
    inspected = open_all([world.path])
    with inspecting(inspected) as running:
        yield running
    inspected.close()


@pytest.fixture(scope="session")
def visitor(inspector: Inspector) -> Visitor:
    return Visitor.admitted(inspector)
