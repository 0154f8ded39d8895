"""A call of a def of an earlier cell says nothing that its cell has said, in both languages; where it does, the place is the call."""

import pytest

import tc_jupyter as tc

TEXT = """
def f(float(N) X, float(M) Z, int32(M) P) -> (Y) {
    Y(i) = X(i) + Z(i + 1) where i in 0:N
    Y(P(i)) += Z(i)
}
"""
CALLS = {
    "tc": "def g(float(A) X, float(B) Z, int32(B) P) -> (H) { H = f(X, Z, P) }",
    "sac": "float[.] g(float[.] X, float[.] Z, int[.] P) { return f(X, Z, P); }",
}


@pytest.mark.parametrize("language", CALLS)
def test_what_the_cell_of_a_def_has_said(language):
    with pytest.warns(tc.DiagnosticWarning):
        f = tc.compile(TEXT).f
    found = tc.analyze(CALLS[language], language=language, known={"f": f})
    assert found.diagnostics == ()
    strict = tc.analyze(CALLS[language], language=language, known={"f": f}, strict=True)
    (error,) = [each for each in strict.diagnostics if each.is_error]
    assert error.code.number == "TC322"
    assert "f(X, Z, P)" in strict.source.slice(error.span)


def test_what_is_known_at_the_call_alone_is_said():
    text = "def g(float(A) X, float(A) Z, int32(A) P) -> (H) { H = f(X, Z, P) }"
    f = tc.compile(TEXT, allow=("TC322", "TC323", "TC325")).f
    (error,) = tc.analyze(text, known={"f": f}).diagnostics
    assert error.code.number == "TC311"


SAC_TEXT = """
float[.] f(int n, float[.] a) { return { [i] -> a[i + n] | [i] < [5] }; }
float[.,.] f(int n, float[.,.] a) { return { [i,j] -> a[i + n, j] | [i,j] < [5, shape(a)[1]] }; }
float[*] open(int n, float[*] a) { return { [i] -> a[i + n] | [i] < [5] }; }
"""
SAC_CALLS = [
    ("tc", "def g(int32 m, float(A) X) -> (H) { H = f(m, X) }"),
    ("sac", "float[.] g(int m, float[.] x) { return f(m, x) + f(m, x); }"),
    ("sac", "float[.,.] g(int m, float[.,.] x) { return f(m, x); }"),
]


@pytest.mark.parametrize(("language", "call"), SAC_CALLS)
def test_what_the_cell_of_a_sac_function_has_said(language: str, call: str) -> None:
    with pytest.warns(tc.DiagnosticWarning):
        module = tc.compile(SAC_TEXT, language="sac")
    known = {"f": module.f, "open": module.open}
    assert tc.analyze(call, language=language, known=known).diagnostics == ()
    opened = tc.analyze(call.replace("f(", "open("), language=language, known=known)
    assert {each.code.number for each in opened.diagnostics} == {"TC322"}  # nobody has seen it before
