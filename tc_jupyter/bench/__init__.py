"""What `tc-jupyter bench` measures: programs with the same in other libraries and in C, one process, interleaved rounds.

* `workloads`: a `.tc` file of `suites/` -> a def with sizes, data, peers and a reference in double precision;
* `cpu`: the suites `cpu`, `borders`, `operands` and `scatter`, on one thread and on all, and their table;
* `pipelines`: the peer Halide, with a schedule by hand and one that it found;
* `plain`: programs in several spellings against their loops in C and in Numba (`suites/plain`);
* `sac`: examples of `%%sac` beside `%%tc` and NumPy;
* `runner`: which suite is run, and those of compiling, tuning and the GPU.

A new workload is one more file in `suites/`, whose header says which suites it belongs to; nothing else names it.
"""
