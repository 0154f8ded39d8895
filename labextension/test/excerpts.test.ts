import assert from 'node:assert/strict';
import { test } from 'node:test';
import { excerpts } from '../src/excerpts.js';

const shown = (text: string): string[] => excerpts(text).map(({ from, to }) => text.slice(from, to));
const HEAD = 'error[TC204] reduction-missing: `=` does not combine\n --> cell:2:13\n';
const LINES = '  |\n2 |     C(i, j) = A(i, k)\n  |             ^      - `k` | here';

test('lines of a source with their marks are found, and nothing around them', () => {
  assert.deepEqual(shown(`${HEAD}${LINES}\nhelp: replace it\n2 | C(i, j) +=! A(i, k)`), [LINES, '2 | C(i, j) +=! A(i, k)']);
  const far = '   |\n 1 | a\n   | -\n...\n12 | b\n   | ^';
  assert.deepEqual(shown(`x\n  --> my:file:1:2\n${far}\n\nwarning\n --> cell:1:1\n  |\n1 | c\n  | ^`), [far, '  |\n1 | c\n  | ^']);
});

test('other texts have none', () => {
  for (const text of ['', '1 | a table\n2 | of numbers', '----> 1 f(x)\n  | x', ' --> cell:1:1', `${HEAD}...\n${'x'.repeat(1_000_000)}`]) {
    assert.deepEqual(excerpts(text), []);
  }
});

test('the work has a limit', () => {
  assert.equal(excerpts(` --> a:1:1\n${'1 | a\n\n'.repeat(20_000)}`).length, 500);
  assert.deepEqual(excerpts(` --> ${'1:'.repeat(90_000)}`), []);
});
