"""Fast array kernels from index notation in a notebook cell.

The folders, in the order in which a cell flows through them; each is named after the value it makes:

* `diagnostics`: what is said to the user;
* `syntax`: text -> tree;
* `program`: tree -> checked program;
* `ranges`: program -> ranges, shapes, origins, preconditions;
* `schedule`: ranges -> schedule and bounds;
* `loops`: program, schedule and bounds -> loops;
* `codegen`: loops -> source text;
* `runtime`: source text -> callable;
* `simulator`: PTX and arrays -> results and findings, without a GPU;
* `compiler`: the arrow itself;
* `autotune`: candidates -> timings -> store;
* `function`: what the user holds and calls;
* `bench`, `distributed`, `ide`: suites against peers, chunked arrays, answers for editors;
* `cli`, `notebook`: the command line, the magics and widgets.
"""
