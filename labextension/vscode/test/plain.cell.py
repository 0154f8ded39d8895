# SYNTAX TEST "source.python" "a cell of Python stays one"

a = 3 %tc
#     ^ keyword.operator.python
def f(a): return a
#<--- keyword.python
