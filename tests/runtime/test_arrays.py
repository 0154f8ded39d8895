"""Arrays of any library as address, extents and strides."""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest

from tc_jupyter.program import DType
from tc_jupyter.runtime.arrays import (
    ArgumentProblem,
    ArrayView,
    as_numpy,
    copied,
    copy_into,
    index_bits,
    is_contiguous,
    lent,
    library_of,
    overlaps_itself,
    prepared,
    register_arrays,
    row_major,
    share_memory,
    view_of,
)

ml_dtypes = pytest.importorskip("ml_dtypes")


def at(shape, strides, dtype=DType.FLOAT32, address=1 << 20) -> ArrayView:
    """A view of a place that does not exist."""
    library = library_of(np.zeros(1))
    return ArrayView(address, shape, strides, dtype, dtype.value, "cpu", True, None, library)


BASE = np.arange(24, dtype=np.float32).reshape(4, 6)

NUMPY_ARRAYS = {
    "contiguous": BASE,
    "transposed": BASE.T,
    "reversed": BASE[::-1, ::-1],
    "strided": BASE[::2, 1::3],
    "broadcast": np.broadcast_to(BASE[0], (5, 6)),
    "column": BASE[:, 2],
    "zero-size": BASE[:, 3:3],
    "0-d": np.array(2.5, np.float32),
    "non-native": BASE.astype(">f4"),
    "misaligned": np.frombuffer(b"\0" + BASE.tobytes(), np.float32, 24, 1).reshape(4, 6),
    "field": np.zeros(7, [("tag", "u1"), ("value", "<f4")])["value"],
    "half": BASE.astype(np.float16),
    "bfloat16": BASE.astype(ml_dtypes.bfloat16),
    "bool": BASE > 3,
}


@pytest.mark.parametrize("name", NUMPY_ARRAYS)
def test_numpy_arrays_are_seen_as_they_are(name):
    array = NUMPY_ARRAYS[name]
    view = view_of(array)
    assert view.address == array.__array_interface__["data"][0]
    assert view.shape == array.shape
    assert view.strides == array.strides
    assert view.device == "cpu"
    assert view.writable == array.flags.writeable
    assert view.contiguous == array.flags.c_contiguous
    assert view.library.name == "numpy"


@pytest.mark.parametrize("name", NUMPY_ARRAYS)
def test_prepared_arrays_have_the_same_values_and_are_copied_only_where_needed(name):
    array = NUMPY_ARRAYS[name]
    view = prepared(view_of(array))
    assert view.usable
    assert (view.owner is array) == (name not in ("non-native", "misaligned", "field"))
    np.testing.assert_array_equal(as_numpy(view).astype(np.float64), array.astype(np.float64))


def test_every_type_of_the_language_is_known_in_both_byte_orders():
    for dtype in DType:
        numpy_dtype = np.dtype(ml_dtypes.bfloat16) if dtype is DType.BFLOAT16 else np.dtype(dtype.value)
        assert view_of(np.zeros(3, numpy_dtype)).dtype is dtype
        if dtype.bytes > 1 and dtype is not DType.BFLOAT16:
            swapped = view_of(np.zeros(3, numpy_dtype.newbyteorder()))
            assert swapped.dtype is dtype
            assert not swapped.usable


@pytest.mark.parametrize("dtype", ["clongdouble", "O", "U3", "M8[s]", "longdouble", [("a", "f4")], "V4"])
def test_other_element_types_have_no_dtype(dtype):
    if dtype == "longdouble" and np.dtype("longdouble") == np.dtype("float64"):
        pytest.skip("long double is double here")
    assert view_of(np.zeros(3, dtype)).dtype is None


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        ([1, 2], "type", "list"),
        (((1.0,),), "type", "tuple"),
        (None, "type", "None"),
        ("text", "type", "str"),
        (3, "rank", "3"),
        (np.float32(3), "rank", "3"),
        (np.ma.array([1.0, 2.0], mask=[True, False]), "device", "masked"),
        (object(), "type", "object"),
    ],
)
def test_what_is_no_array_is_refused_in_words(value, kind, words):
    with pytest.raises(ArgumentProblem) as caught:
        view_of(value)
    assert caught.value.kind == kind
    assert words in caught.value.came


def test_sparse_arrays_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    for value in (sparse.csr_matrix(np.eye(3)), sparse.coo_array(np.eye(3))):
        with pytest.raises(ArgumentProblem, match="sparse"):
            view_of(value)


def test_subclasses_of_numpy_arrays_are_numpy_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3, 2))
    assert view_of(mapped).shape == (3, 2)
    assert view_of(np.asmatrix(BASE)).shape == (4, 6)


# other libraries ---------------------------------------------------------------------------------------------------------------


class Interface:
    """Speaks only `__array_interface__`, on the instance."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class Capsule:
    """Speaks only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [Interface, Capsule])
@pytest.mark.parametrize("name", ["contiguous", "transposed", "strided", "zero-size", "0-d"])
def test_protocols_give_the_same_memory(wrap, name):
    array = NUMPY_ARRAYS[name]
    view = view_of(wrap(array))
    assert view.shape == array.shape
    if array.size:
        assert view.address == array.__array_interface__["data"][0]
    np.testing.assert_array_equal(as_numpy(view), array)


def test_a_module_whose_name_begins_as_that_of_jax_is_another_one(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setattr(Capsule, "__module__", "jaxtools")
    assert lent(Capsule(BASE), written=False) is None


def test_a_capsule_of_another_device_is_refused():
    class Elsewhere(Capsule):
        def __dlpack_device__(self):
            return (4, 0)

        def __dlpack__(self, **options):
            raise BufferError("not on the CPU")

    with pytest.raises(ArgumentProblem, match="not on the CPU"):
        view_of(Elsewhere(BASE))


class DeviceArray:
    """Looks like a CuPy array; nothing may read its memory."""

    dtype = np.dtype(np.float32)

    def __init__(self, **more):
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (0xDEAD000, False),
            **more,
        }


def test_the_cuda_array_interface_is_understood():
    view = view_of_class(DeviceArray())
    assert (view.address, view.shape, view.strides, view.device) == (0xDEAD000, (3, 4), (16, 4), "cuda:0")
    view = view_of_class(DeviceArray(strides=(4, 12), data=(0xDEAD000, True)))
    assert view.strides == (4, 12)
    assert not view.writable


def view_of_class(array):
    """A class attribute says that instances have the interface."""
    type(array).__cuda_array_interface__ = None
    return view_of(array)


torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        lambda t: t.T,
        lambda t: t[::2, 1::3],
        lambda t: t[0].expand(5, 6),
        lambda t: t.to(torch.bfloat16),
        lambda t: t.to(torch.float16),
        lambda t: t.to(torch.int64),
        lambda t: t > 3,
        lambda t: t[1, 1],
        lambda t: t[:, 3:3],
        lambda t: t.to(torch.uint16),
    ],
)
def test_torch_tensors(make):
    tensor = make(torch.arange(24, dtype=torch.float32).reshape(4, 6))
    view = view_of(tensor)
    assert view.library.name == "torch"
    assert view.shape == tuple(tensor.shape)
    assert str(tensor.dtype) == f"torch.{view.dtype.value}"
    assert view.usable
    values = as_numpy(view)
    np.testing.assert_array_equal(np.asarray(values, np.float64), tensor.to(torch.float64).numpy())


def test_a_torch_tensor_that_requires_a_gradient_is_read_but_not_written():
    tensor = torch.ones(3, requires_grad=True)
    assert not view_of(tensor).writable
    assert as_numpy(view_of(tensor)).tolist() == [1, 1, 1]


def test_a_lazily_negated_torch_tensor_is_resolved():
    tensor = torch.tensor([1 + 2j]).conj().imag
    assert tensor.is_neg()
    assert as_numpy(view_of(tensor)).tolist() == [-2.0]


@pytest.mark.parametrize(
    "make, way",
    [
        (lambda: torch.eye(3).to_sparse(), "`.to_dense()`"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "`.dequantize()`"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "`.to_padded_tensor(0)`"),
        (lambda: torch.empty(3, device="meta"), "with values"),
    ],
)
def test_torch_tensors_without_plain_memory_are_refused(make, way):
    with pytest.raises(ArgumentProblem) as problem:
        view_of(make())
    assert way in problem.value.help


def test_torch_allocates_its_own_results():
    library = library_of(torch.ones(1))
    for dtype in DType:
        view = library.allocate((2, 3), dtype, "cpu")
        result = library.finish(view)
        assert isinstance(result, torch.Tensor)
        assert str(result.dtype) == f"torch.{dtype.value}"
        assert result.shape == (2, 3)
        assert not result.requires_grad


def test_jax_arrays_are_read_in_place_and_never_written():
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(6, dtype=jax.numpy.float32).reshape(2, 3)
    view = view_of(array)
    assert view.library.name == "jax"
    assert not view.writable
    np.testing.assert_array_equal(as_numpy(view), np.asarray(array))
    half = view_of(array.astype(jax.numpy.bfloat16))
    assert half.dtype is DType.BFLOAT16
    fresh = view.library.allocate((2, 2), DType.FLOAT32, "cpu")
    as_numpy(fresh)[...] = 3
    result = view.library.finish(fresh)
    assert isinstance(result, jax.Array)
    assert (result == 3).all()
    with pytest.raises(ArgumentProblem, match="traced"):
        jax.jit(lambda x: view_of(x) and x)(array)


class Toy:
    """An array class that nobody knows: a ctypes buffer, extents, and strides in elements."""

    def __init__(self, shape, dtype="float32", strides=None, memory=None):
        self.extents, self.kind = shape, dtype
        count = int(np.prod(shape, dtype=np.int64))
        self.memory = memory or (ctypes.c_char * (count * np.dtype(dtype).itemsize or 1))()
        self.steps = strides

    def numpy(self):
        steps = None if self.steps is None else [s * np.dtype(self.kind).itemsize for s in self.steps]
        return np.ndarray(self.extents, self.kind, self.memory, 0, steps)


def register_toy():
    register_arrays(
        Toy,
        shape=lambda a: a.extents,
        dtype=lambda a: a.kind,
        strides=lambda a: a.steps,
        pointer=lambda a: ctypes.addressof(a.memory),
        allocate=lambda shape, dtype, device: Toy(shape, dtype),
    )


def test_a_registered_class_is_a_library():
    assert library_of(Toy((2,))) is None
    register_toy()
    toy = Toy((2, 3), strides=(1, 2))
    toy.numpy()[...] = [[1, 2, 3], [4, 5, 6]]
    view = view_of(toy)
    assert view.strides == (4, 8)
    assert as_numpy(view).tolist() == [[1, 2, 3], [4, 5, 6]]
    result = view.library.finish(view.library.allocate((4,), DType.INT16, "cpu"))
    assert isinstance(result, Toy)
    assert result.kind == "int16"

    class Child(Toy):
        pass

    assert view_of(Child((5,))).shape == (5,)


# arithmetic on places ------------------------------------------------------------------------------------------------------------


def test_row_major_strides_and_contiguity():
    assert row_major((2, 3, 4), 8) == (96, 32, 8)
    assert row_major((), 4) == ()
    assert is_contiguous((2, 1, 4), (16, 999, 4), 4)
    assert not is_contiguous((4, 2), (4, 16), 4)
    assert is_contiguous((4, 0), (1, 1), 4)


def test_spans_of_reversed_and_empty_arrays():
    array = np.arange(10, dtype=np.float32)
    low, high = view_of(array[::-1]).span
    assert high - low == 40
    assert low == array.__array_interface__["data"][0]
    low, high = view_of(array[:0]).span
    assert low == high


def test_interleaved_arrays_share_no_memory():
    array = np.zeros(10, np.float32)
    assert not share_memory(view_of(array[::2]), view_of(array[1::2]))
    assert share_memory(view_of(array[::2]), view_of(array[1::3]))
    assert not share_memory(view_of(array), view_of(array.copy()))
    assert not share_memory(view_of(array[:0]), view_of(array))
    assert share_memory(view_of(array), view_of(array.view(np.uint8)))


def test_arrays_that_overlap_themselves_are_found():
    array = np.zeros(12, np.float32)
    assert overlaps_itself(view_of(np.broadcast_to(array, (3, 12))))
    assert overlaps_itself(view_of(np.lib.stride_tricks.sliding_window_view(array, 3)))
    assert not overlaps_itself(view_of(array.reshape(3, 4).T[::-1]))
    assert not overlaps_itself(view_of(np.broadcast_to(array[:0], (3, 0))))


def test_index_width_is_chosen_without_allocating():
    giant = 1 << 31
    assert index_bits(at((giant // 4 - 1,), (4,))) == 32
    assert index_bits(at((giant // 4,), (4,))) == 64
    assert index_bits(at((giant - 1,), (1,), DType.INT8)) == 32
    assert index_bits(at((65536, 65536), (4 * 65536, 4))) == 64
    assert index_bits(at((2, 3), (giant, 4))) == 64
    assert index_bits(at((2, 3), (-giant, 4))) == 64
    assert index_bits(at((1, 3), (giant, 4))) == 32
    assert index_bits(at((giant,), (0,))) == 64


def test_copies_keep_bits_of_bfloat16_and_byte_orders():
    half = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16).T
    view = copied(view_of(half))
    assert view.contiguous
    assert view.dtype is DType.BFLOAT16
    np.testing.assert_array_equal(as_numpy(view).astype(np.float32), half.astype(np.float32))
    target = np.zeros(3, ">i4")
    copy_into(view_of(target), view_of(np.array([1, 2, 3], np.int32)))
    assert target.tolist() == [1, 2, 3]
