"""Boxes of partitions: text, numbers, holes and hidden partitions."""

import numpy as np

from tc_jupyter.ranges.partitions import resolve
from tests.sac_call import bind


def program(text, *arguments):
    return bind(text, *arguments)[0].specialized.program


def test_inner_region_and_border():
    text = "float[*] f(float[*] a) { return { iv -> 0 * a[iv] | [1,1] <= iv < shape(a)-1; iv -> a[iv] }; }"
    found = resolve(program(text, np.zeros((5, 6), np.float32)))
    boxes = found.boxes["result"]
    assert [box.number for box in boxes] == [0, 1, 1, 1, 1]
    assert not found.diagnostics
    numbers = resolve(program(text, np.zeros((5, 6), np.float32)), {"a_0": 5, "a_1": 6})
    assert [box.box_text for box in numbers.boxes["result"]] == [
        "[1, 4) x [1, 5)",
        "[0, 1) x [0, 6)",
        "[4, 5) x [0, 6)",
        "[1, 4) x [0, 1)",
        "[1, 4) x [5, 6)",
    ]
    assert sum(box.elements for box in numbers.boxes["result"]) == 30


def test_boxes_cover_every_position_once():
    text = "int[*] f(int[*] a) { return { iv -> 1 | [2,1] <= iv < [4,3]; iv -> 2 | [1,0] <= iv < [3,2]; iv -> a[iv] | [1,1] <= iv }; }"
    p = program(text, np.zeros((5, 4), np.int32))
    boxes = resolve(p, {"a_0": 5, "a_1": 4}).boxes["result"]
    hits = np.zeros((5, 4), int)
    for box in boxes:
        hits[tuple(slice(*interval) for interval in box.numbers)] += 1
    assert (hits == 1).all()


def test_holes_and_hidden_partitions_with_numbers():
    text = "int[*] f(int[*] a, int[*] b) { return { [i] -> 1 | [i] < shape(b); [i] -> 2 | [i] < [2]; [i] -> a[i] | [3] <= [i] }; }"
    p = program(text, np.zeros(6, np.int32), np.zeros(1, np.int32))
    small = resolve(p, {"a_0": 6, "b_0": 1})
    assert [(d.code.number, d.message) for d in small.diagnostics] == [
        ("TC355", "1 positions that no partition covers are filled with zeros: [2, 3)")
    ]
    large = resolve(p, {"a_0": 6, "b_0": 6})
    assert {d.code.number for d in large.diagnostics} == {"TC354"}
