"""The suite of `%%sac` examples: all three forms compute the same."""

import pytest

from tc_jupyter.bench import sac

EXAMPLES = sac.examples()


def test_there_are_examples_of_ranks_1_to_4():
    assert len(EXAMPLES) >= 15
    assert {f"update of the inner region, rank {rank}" for rank in (2, 3, 4)} <= {each.name for each in EXAMPLES}


@pytest.mark.some(4)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_the_three_forms_agree(example):
    pytest.importorskip("llvmlite")
    comprehension, loops, numpy = (call() for call in sac._calls(example, limit=7).values())
    assert sac.close(comprehension, loops)
    assert sac.close(comprehension, numpy)
