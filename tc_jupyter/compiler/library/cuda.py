"""The CUDA form of an exported def: a file of kernels for each architecture, and the C functions that launch them.

Comes in: a def with builds for devices. Goes out: `NAME_sm_80.cu` with all kernels and a table of them, and the text of
`f_cuda(...)`, which is part of the C file where it is compiled with `-DNAME_WITH_CUDA`.

The arrays of `f_cuda` are in the memory of the current device, as are temporaries. Conditions are those of `f`; index tensors that
have to be looked at are copied to the host before the kernel that relies on them.

Worked example: `mv_cuda(&A, &B, &o, NULL, stream)` starts the kernel of `mv` in a stream, and returns before it is done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tc_jupyter.runtime.launch import RECORD
from tc_jupyter.schedule import STATIC_SHARED_BYTES

from .calls import Calls, Entry
from .failures import c_string
from .integers import c_size
from .processor import Processor
from .signature import ELEMENTS, Parameter
from .variants import Step

_PAD = "    "

SUPPORT = """
#include <cuda_runtime_api.h>

static int tc_cuda(const char *of, cudaError_t status)
{
    return status == cudaSuccess ? 0 : tc_fail(of, TC_DEVICE, "CUDA: %s", cudaGetErrorString(status));
}

/* The place of the newest code that the current device runs, -1 where there is none. */
static int tc_device(const int *archs, int count)
{
    int device = 0, major = 0, minor = 0;
    if (cudaGetDevice(&device) || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) return -1;
    if (cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device)) return -1;
    while (count > 0 && archs[count - 1] > 10 * major + minor) count--;
    return count - 1;
}

static void *tc_device_memory(const tc_options *o, size_t bytes, cudaStream_t stream)
{
    void *memory = NULL;
    if (o && o->allocate) return o->allocate(o->user, bytes, 256);
    return cudaMallocAsync(&memory, bytes, stream) == cudaSuccess ? memory : NULL;
}

static void tc_device_release(const tc_options *o, void *memory, cudaStream_t stream)
{
    if (!memory) return;
    if (!(o && o->allocate)) cudaFreeAsync(memory, stream);
    else if (o->release) o->release(o->user, memory);
}

/* Memory of the device on the host, for a look at it. */
static void *tc_host(const void *device, int64_t bytes, cudaStream_t stream)
{
    void *memory = malloc((size_t)bytes + 1);
    if (memory && bytes && (cudaMemcpyAsync(memory, device, (size_t)bytes, cudaMemcpyDeviceToHost, stream) != cudaSuccess
                            || cudaStreamSynchronize(stream) != cudaSuccess)) {
        free(memory);
        memory = NULL;
    }
    return memory;
}

static int tc_launch_kernel(const char *of, const void *kernel, const int64_t *shape, size_t shared, void **arguments,
                            cudaStream_t stream)
{
    cudaError_t status = cudaSuccess;
    if (shape[0] <= 0 || shape[1] <= 0 || shape[2] <= 0) return 0;
    dim3 grid = {(unsigned)tc_min(shape[0], INT32_MAX), (unsigned)tc_min(shape[1], 65535), (unsigned)tc_min(shape[2], 65535)};
    dim3 block = {(unsigned)shape[3], (unsigned)shape[4], (unsigned)shape[5]};
    if (shared > STATIC) status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (status == cudaSuccess) status = cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
    return tc_cuda(of, status);
}
""".replace("STATIC", str(STATIC_SHARED_BYTES))


def table(name: str, kind: str) -> str:
    """The C name of the table of kernels for an architecture."""
    return f"{name}_{kind}_kernels"


def kernel_file(name: str, kind: str, kernels: Sequence[tuple[str, Step]]) -> str:
    """The text of `NAME_sm_80.cu`; `kernels` are steps by the names of their functions.

    The namespaces have the architecture in their names, since a program links the files of all of them.
    """
    lines = [
        f"// The kernels of {name} for {kind}: nvcc -arch={kind} -std=c++17 -fmad=true -ftz=false -c {name}_{kind}.cu",
        "",
    ]
    for symbol, step in kernels:
        text = re.sub(r'^#line \d+ ".*"\n', "", step.source.text, flags=re.MULTILINE)
        text = text.replace('extern "C" __global__', "__global__")
        text = re.sub(rf"\b{re.escape(step.source.entry)}\(", f"{symbol}(", text)
        lines += [f"namespace {kind}_{symbol} {{", text.strip(), "}", ""]
    rows = "".join(f"{_PAD}(const void *){kind}_{symbol}::{symbol},\n" for symbol, _ in kernels)
    hidden = '__attribute__((visibility("hidden")))'
    lines += ["#ifndef __CUDACC_RTC__  // NVRTC knows no functions of the host"]
    lines += [f'extern "C" {hidden} const void *const {table(name, kind)}[];']
    lines += [f"const void *const {table(name, kind)}[] = {{", f"{rows}{_PAD}nullptr", "};", "#endif", ""]
    return "\n".join(lines)


class CudaCalls:
    """Prints the functions of a def that launch kernels; they stand behind those of `Calls`, of which they call some."""

    def __init__(
        self, calls: Calls, library: str, kinds: Sequence[Processor], places: dict[tuple[str, str], int]
    ) -> None:
        """`places`: of each kernel in the table, by the name of the device and the kernel's text."""
        self.calls, self.library, self.kinds, self.places = calls, library, kinds, places
        self.name, self.signature = calls.name, calls.signature

    def prototype(self, suffix: str = "") -> str:
        """The head of the public function."""
        return self.signature.call(f"_cuda{suffix}")[:-1] + ", void *stream)"

    def printed(self, entries: Sequence[Entry]) -> list[str]:
        """All functions."""
        lines: list[str] = []
        for entry in entries:
            for variant in entry.variants:
                for kind, steps in zip(self.kinds, variant.steps, strict=True):
                    lines += self.plan(f"{variant.name}{entry.suffix}_{kind.name}", steps, kind.name)
            lines += self.entry(entry)
        return lines

    def plan(self, name: str, steps: Sequence[Step], kind: str) -> list[str]:
        """One build: memory for its temporaries, then its kernels in order."""
        calls = self.calls
        body = ["int over = 0, code = 0;", "int64_t total = 0;", "char *memory = NULL;"]
        body += ["(void)over; (void)total; (void)c; (void)memory;"]
        places, _ = calls.temporaries(steps, calls.given(), body)
        numbers = [each for each in self.signature.inputs if each.pairs and not each.rank]
        for k, each in enumerate(numbers):
            body.append(f"const int64_t z{k} = tc_place(&over, &total, {each.dtype.bytes}, 64);")
        lacks = calls.plain(
            "TC_MEMORY", c_string("the device has no memory for %lld bytes of temporaries"), "(long long)total"
        )
        if any(step.info.checks for step in steps):
            body.append(f"const int64_t record_at = tc_place(&over, &total, {8 * RECORD}, 64);")
        if places or numbers or any(step.info.checks for step in steps):
            body.append("if (!over) memory = tc_device_memory(options, (size_t)total + 1, stream);")
            body.append(f"if (!memory) return {lacks};")
        for k, each in enumerate(numbers):
            pointer = f"c->{calls.pointers[each.name]}"
            copy = f"cudaMemcpyAsync(memory + z{k}, {pointer}, {each.dtype.bytes}, cudaMemcpyHostToDevice, stream)"
            body += [f"if ((code = tc_cuda({self.name}_name, {copy}))) goto done;", f"{pointer} = memory + z{k};"]
        for number, step in enumerate(steps):
            body += self.launch(number, step, kind, places)
        body += ["goto done;", "done:", "tc_device_release(options, memory, stream);", "return code;"]
        head = calls.head(name, ", const tc_options *options, cudaStream_t stream")
        return [head, "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def launch(self, number: int, step: Step, kind: str, places: dict[str, str]) -> list[str]:
        """The checks on data before a kernel, and its start."""
        calls = self.calls
        lines = [f"{{ /* {step.info.name} */"]
        for scan in step.scans:
            if scan in calls.looked:
                lines += self.look(scan, places)
        names: list[str] = []
        for slot, argument in enumerate(step.source.arguments):
            match argument.kind:
                case "buffer":
                    value = f"const void *a{slot} = {calls.pointer(argument.name, places)};"
                case "size":
                    value = f"int64_t a{slot} = {calls.number(argument.name)};"
                case "scalar":
                    assert argument.dtype is not None
                    value = f"{ELEMENTS[argument.dtype]} a{slot} = c->{calls.values[argument.name]};"
                case _:
                    continue
            lines.append(_PAD + value)
            names.append(f"&a{slot}")
        for k, each in enumerate(step.source.workspace):
            lines.append(f"{_PAD}void *w{k} = memory + {places[f'workspace {number} {each.name}']};")
            names.append(f"&w{k}")
        if step.info.checks:
            memory = "void *record = memory + record_at;"
            clear = f"cudaMemsetAsync(record, 0, {8 * RECORD}, stream)"
            lines += [f"{_PAD}{memory}", f"{_PAD}if ((code = tc_cuda({self.name}_name, {clear}))) goto done;"]
            names.append("&record")
        lines += [f"{_PAD}void *arguments[] = {{{', '.join([*names, 'NULL'])}}};"]
        shape = ", ".join(
            calls.integer(extent, step) for extent in (*step.source.launch.grid, *step.source.launch.block)
        )
        lines.append(f"{_PAD}const int64_t shape[] = {{{shape}}};")
        kernel = f"{table(self.library, kind)}[{self.places[kind, step.source.text]}]"
        start = f"tc_launch_kernel({self.name}_name, {kernel}, shape, {step.source.launch.shared}, arguments, stream)"
        lines.append(f"{_PAD}if ((code = {start})) goto done;")
        if step.info.checks:
            lines += [_PAD + line for line in self.record()]
        return [*lines, "}"]

    def record(self) -> list[str]:
        """What the checks inside a kernel have found."""
        return [
            f"int64_t *found = tc_host(record, {8 * RECORD}, stream);",
            f"if (!found) {{ code = tc_cuda({self.name}_name, cudaErrorUnknown); goto done; }}",
            f"int64_t errors[{RECORD + 1}] = {{found[0], 0}};",
            f"memcpy(errors + 2, found + 1, {8 * (RECORD - 1)});",
            "free(found);",
            f"if (errors[0]) {{ code = {self.name}_point(c, errors); goto done; }}",
        ]

    def look(self, scan: int, places: dict[str, str]) -> list[str]:
        """A check on data, which is brought to the host for it."""
        calls = self.calls
        buffers = calls.looked[scan].buffers
        inner: list[str] = []
        for k, buffer in enumerate(buffers):
            size = str(calls.program.tensor(buffer).dtype.bytes)
            for extent in calls.looks.shape(buffer):
                size = f"tc_mul(&over, {size}, tc_max(0, {c_size(extent, calls.names)}))"
            inner.append(f"void *h{k} = tc_host({calls.pointer(buffer, places)}, {size}, stream);")
        missing = " || ".join(f"!h{k}" for k in range(len(buffers))) or "0"
        passed = "".join(f", h{k}" for k in range(len(buffers)))
        lacks = calls.plain("TC_DEVICE", c_string("CUDA: index tensors cannot be copied to the host"))
        inner.append(f"code = {missing} ? {lacks} : {self.name}_look{scan}(c, NULL{passed});")
        inner += [f"free(h{k});" for k in range(len(buffers))]
        inner.append("if (code) goto done;")
        return [f"{_PAD}{{", *(f"{_PAD * 2}{line}" for line in inner), f"{_PAD}}}"]

    def entry(self, entry: Entry) -> list[str]:
        """The function that a program calls."""
        calls, archs = self.calls, ", ".join(kind.name[3:] for kind in self.kinds)
        body = [f"struct {self.name}_call call, *c = &call;", "int over = 0, level, code;"]
        body += [f"static const int archs[] = {{{archs}}};"]
        body += [f"int (*run)(struct {self.name}_call *, const tc_options *, cudaStream_t) = NULL;", "(void)over;"]
        body += calls.arguments()
        for each in self.signature.inputs:
            if each.rank:
                body.append(f"if (!q_{each.c}) return {self.strided(each)};")
        lacks = calls.plain("TC_PROCESSOR", c_string(f"there is no device, or no code for it: the library has {archs}"))
        body += [f"if ((level = tc_device(archs, {len(self.kinds)})) < 0) return {lacks};"]
        types = f"struct {self.name}_call *, const tc_options *, cudaStream_t"
        body += calls.chosen(entry, [kind.name for kind in self.kinds], types, everywhere=True)
        none = calls.plain("TC_UNSUPPORTED", c_string("the library has no code for these sizes"))
        body += [f"if (!run) return {none};", "return run(c, options, (cudaStream_t)stream);"]
        return [f"TC_PUBLIC {self.prototype(entry.suffix)}", "{", *(f"{_PAD}{line}" for line in body), "}", ""]

    def strided(self, each: Parameter) -> str:
        """What is said of an input that does not lie in row order."""
        return self.calls.plain("TC_STRIDES", c_string(f"`{each.name}` does not lie in row order"))
