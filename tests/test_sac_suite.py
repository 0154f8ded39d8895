"""The suite of `%%sac` examples: all three forms compute the same."""

import pytest

from tc_jupyter import sac_suite

EXAMPLES = sac_suite.examples()


def test_there_are_examples_of_ranks_1_to_4():
    assert len(EXAMPLES) >= 15
    assert {f"update of the inner region, rank {rank}" for rank in (2, 3, 4)} <= {each.name for each in EXAMPLES}


@pytest.mark.some(4)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_the_three_forms_agree(example):
    pytest.importorskip("llvmlite")
    sac, tc, numpy = (call() for call in sac_suite._calls(example, limit=7).values())
    assert sac_suite.close(sac, tc)
    assert sac_suite.close(sac, numpy)
