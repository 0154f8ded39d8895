import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Text } from '@codemirror/state';
import { body, cellOffset, languageOf, readCell, splitSource, toOffset, toPosition, toRange } from '../src/cells.js';
import { evaluate, namesIn } from '../src/evaluate.js';
import { PACKAGE } from '../src/version.js';
import { readAnalysis, readCellStates, readCompletions, readHover, readRename } from '../src/protocol.js';

const doc = (text: string) => Text.of(text.split('\n'));

test('the predicate', () => {
  const cases: [string, 'tc' | 'sac' | null][] = [
    ['%%tc', 'tc'],
    ['%%tc --strict\ndef', 'tc'],
    ['\n\n%%sac\n', 'sac'],
    ['%%time\n%%timeit -n 3\n%%tc', 'tc'],
    ['%%capture out\n\n%%prun\n%%sac x', 'sac'],
    ['%%tcx', null],
    ['%%time\nx = 1\n%%tc', null],
    ['import x\n%%tc', null],
    [' %%tc', null],
    ['', null],
    ['%%', null],
    ['%%time', null]
  ];
  for (const [text, wanted] of cases) {
    assert.equal(languageOf(text), wanted, text);
    assert.equal(readCell(doc(text))?.language ?? null, wanted, text);
    assert.equal(splitSource(text)?.language ?? null, wanted, text);
  }
});

test('offsets and code points agree, with astral characters and a stacked line', () => {
  const text = '%%time\n%%tc --check\n# \u{1D54F}\u00e9\nY(i)';
  const d = doc(text);
  const cell = readCell(d)!;
  assert.equal(cell.magic, '%%tc --check');
  assert.equal(body(d, cell), '# \u{1D54F}\u00e9\nY(i)');
  assert.equal(splitSource(text)!.body, body(d, cell));
  const lines = body(d, cell).split('\n');
  lines.forEach((line, number) => {
    for (let character = 0; character <= [...line].length; character++) {
      const offset = toOffset(d, cell, { line: number, character });
      assert.deepEqual(toPosition(d, cell, offset), { line: number, character });
    }
  });
  assert.equal(d.sliceString(toOffset(d, cell, { line: 0, character: 3 })).codePointAt(0), 0xe9);
});

test('positions outside the text are moved into it', () => {
  const d = doc('%%tc\nab\ncd');
  const cell = readCell(d)!;
  assert.equal(toOffset(d, cell, { line: 99, character: 3 }), d.length);
  assert.equal(toOffset(d, cell, { line: -1, character: 3 }), 5);
  assert.equal(toOffset(d, cell, { line: 0, character: 99 }), 7);
  assert.deepEqual(toPosition(d, cell, cellOffset(1)), { line: 0, character: 0 });
  assert.deepEqual(toRange(d, cell, { start: { line: 1, character: 2 }, end: { line: 0, character: 0 } }), { from: 10, to: 10 });
  const empty = doc('%%tc');
  assert.equal(body(empty, readCell(empty)!), '');
  assert.equal(toOffset(empty, readCell(empty)!, { line: 0, character: 0 }), 4);
});

test('expressions have the values that Python gives', () => {
  const cases: [string, number | boolean | null][] = [
    ['N - K + 1', 96],
    ['-7 // 2', -4],
    ['-7 % 3', 2],
    ['7 % -3', -2],
    ['3*((N - K)//2)', 141],
    ['max(20 - N, 0)', 0],
    ['min(N, K + 2, 50)', 7],
    ['(N if K > 3 else 0)', 100],
    ['N >= 5', true],
    ['0 <= K < N and not N == K', true],
    ['N // 0', null],
    ['M + 1', null],
    ['N +', null],
    ['__import__("os")', null],
    ['99999999999 * 99999999999', null],
    ['', null]
  ];
  for (const [text, wanted] of cases) {
    assert.equal(evaluate(text, { N: 100, K: 5 }), wanted, text);
  }
  assert.deepEqual(namesIn('min(N, K) if N > 2 else M'), ['N', 'K', 'M']);
});

test('readers keep what they can read and never throw', () => {
  for (const junk of [null, undefined, 3, 'x', [], {}, { functions: 3 }, { functions: [null, 3, {}], diagnostics: [{}, { span: 3 }] }]) {
    assert.doesNotThrow(() => [readAnalysis(junk), readHover(junk), readCompletions(junk), readRename(junk), readCellStates(junk)]);
  }
  const span = { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } };
  const analysis = readAnalysis({ diagnostics: [{ span, code: 'TC301', severity: 'odd', fix: { title: 't', edits: [{ span, text: 'x' }, 3] } }, 7] })!;
  assert.equal(analysis.diagnostics.length, 1);
  assert.equal(analysis.diagnostics[0].severity, 'error');
  assert.equal(analysis.diagnostics[0].fix, null);
});

test('the version is that of package.json', () => {
  const data = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string };
  assert.equal(PACKAGE, data.version);
});
