# SYNTAX TEST "source.python" "a cell of a notebook"

%%tc --strict
#<---- keyword.control.directive.tc
#    ^^^^^^^^ variable.parameter.tc
def f(float(N) X) -> (Y) { Y(i) = X(i) }
#<--- meta.embedded.block.tc keyword.control.tc
#     ^^^^^ meta.embedded.block.tc storage.type.tc
