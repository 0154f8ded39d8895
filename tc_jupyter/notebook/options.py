"""The options of `%%tc` and `%%sac` and the subcommands of `%tc`, told once.

Worked example: `parser("%%tc").parse_args(["--strict"]).strict` is `True`.
"""

from __future__ import annotations

from IPython.core.magic_arguments import MagicArgumentParser

TARGETS = ("cpu", "cuda", "interpreter")
SUBCOMMANDS = {
    "list": "the functions of this notebook",
    "inspect": "NAME: the card of a function",
    "source": "NAME [KIND] [SIZE=VALUE ...]: generated text: cuda (default), c, loops, llvm, asm, ptx, sass, rewrites",
    "bench": "NAME ARGUMENT ...: time a call, and the limit of this machine; an argument is a Python expression without blanks",
    "cache": "[--clear]: compiled code kept on disk",
    "explain": "CODE: meaning, example and cure of a message, as in `%tc explain TC301`",
}


def parser(name: str) -> MagicArgumentParser:
    """The parser of a cell magic's line; a wrong option is a `UsageError`."""
    made = MagicArgumentParser(
        name[1:],  # the help adds one `%`
        description=f"Make the functions of a {name} cell functions of this notebook.",
        epilog="A value that begins with a minus sign is written --option=VALUE.",
        add_help=False,
    )
    made.add_argument(
        "--target", choices=TARGETS, help="engine of the functions; default: the GPU if there is one, else the CPU"
    )
    made.add_argument("--strict", action="store_true", help="a condition on sizes that is not proved is an error")
    made.add_argument("--check", action="store_true", help="analyse only, define nothing")
    made.add_argument(
        "--allow", action="append", default=[], metavar="CODE", help="do not report this warning or note; repeatable"
    )
    made.add_argument("--save", metavar="FILE", help="write the cell to a `.tc` or `.sac` file, too")
    made.add_argument(
        "--force", action="store_true", help="with --save: overwrite a file that something else has written"
    )
    made.add_argument("-q", "--quiet", action="store_true", help="show only warnings and notes")
    made.add_argument("-h", "--help", action="store_true", help="show this text")
    return made


OPTIONS = tuple(word for action in parser("%%tc")._actions for word in action.option_strings)  # pyright: ignore[reportPrivateUsage]
"""Every spelling of every option."""


def line_help() -> str:
    """The subcommands of `%tc`, one per line."""
    width = max(map(len, SUBCOMMANDS))
    rows = [f"  %tc {name:<{width}}  {text}" for name, text in SUBCOMMANDS.items()]
    return "\n".join([f"  %tc {'':<{width}}  engine, front end, functions", *rows])
