"""What plain Python shows of a mistake that nobody catches."""

import subprocess
import sys

SCRIPT = """import tc_jupyter as tc
f = tc.compile("def f(float(N) X) -> (Y) { Y(i) = 2 * X(i) }").f
f.schedule().split("Y", "i", 0)
"""


def shown(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


def test_a_refused_schedule_shows_the_line_of_the_user_and_the_message(tmp_path):
    lines = shown(tmp_path, SCRIPT).splitlines()
    assert lines[0].endswith('script.py", line 3, in <module>')
    assert any(line.startswith("error[TC405] bad-factor") for line in lines)
    assert not any("primitives.py" in line or "schedule.py" in line for line in lines)


def test_other_errors_look_as_always(tmp_path):
    text = shown(tmp_path, "import tc_jupyter as tc\ntc.compile\nraise KeyError('mine')\n")
    assert text.startswith("Traceback (most recent call last):")
    assert text.endswith("KeyError: 'mine'\n")
