"""Products of idioms: a sample in every run of the tests, all of them under the ``slow`` marker."""

from __future__ import annotations

import pytest

from tests.soundness.generators.products import consumed, products, reached

ALL = products()
SAMPLE = sorted(ALL)[::149]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample(name: str) -> None:
    assert ALL[name]() is None


@pytest.mark.parametrize("consumer", ["sum", "fsum", "map_native"])
@pytest.mark.parametrize("container", ["dict", "deque", "ordered", "namespace"])
def test_numbers_that_vary_behind_views(consumer: str, container: str) -> None:
    assert consumed(consumer, container, float) is None


@pytest.mark.parametrize("how", ["copied_context", "defaults_tuple"])
def test_dicts_the_collector_does_not_track(how: str) -> None:
    assert reached(how, "scalars") is None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_all(part: int) -> None:
    assert [difference for name in sorted(ALL)[part::8] if (difference := ALL[name]()) is not None] == []
