import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beginning, Legible } from '../src/legible.js';

const MARK = '\u0301';

test('texts are kept as they are', () => {
  for (const text of ['', 'X(i + k) <= N', 'naïve café', '漢字'.repeat(100), 'Y ← X × 3', 'ก ข ค '.repeat(5000)]) {
    assert.equal(new Legible().of(text), text);
  }
});

test('a long run is cut, also one that goes on in the next text, and what follows is kept', () => {
  assert.equal(new Legible().of(`a${MARK.repeat(100_000)}b`), `a${MARK.repeat(200)}…b`);
  const texts = new Legible();
  assert.equal(texts.of(MARK.repeat(150)), MARK.repeat(150));
  assert.equal(texts.of(''), '');
  assert.equal(texts.of(MARK.repeat(300)), `${MARK.repeat(50)}…`);
  assert.equal(texts.of(`${MARK} x`), ' x');
  assert.equal(texts.of(`${MARK} x`), `${MARK} x`);
});

test('all together have an end', () => {
  assert.ok(new Legible().of('ก ข ค '.repeat(500_000)).replace(/ /g, '').length <= 100_000);
});

test('of much data the beginning is read', () => {
  const small = { functions: [{ name: 'f', sizes: ['N'], preconditions: [] }], examples: { f: { N: 3 } }, note: null };
  assert.deepEqual(beginning(small), { data: small, whole: true });
  const { data, whole } = beginning({ functions: Array.from({ length: 100_000 }, (_, n) => ({ name: `f${n}` })) });
  assert.ok(!whole);
  const found = (data as { functions: { name: string }[] }).functions;
  assert.ok(found.length > 1000 && found.length < 10_000);
  assert.equal(found[0].name, 'f0');
  const long = beginning(['x'.repeat(5000)]);
  assert.equal((long.data as string[])[0], `${'x'.repeat(2000)}…`);
});

test('where letters are written from right to left there are few brackets', () => {
  const letter = '\u05d0';
  assert.ok(new Legible().of(letter + '('.repeat(5000)).length < 1100);
  assert.ok(new Legible().of('('.repeat(5000) + letter).length < 1100);
  const before = new Legible();
  assert.equal(before.of('('.repeat(5000)).length, 5000);
  assert.equal(before.of(letter), '', 'as brackets stand before it');
  const after = new Legible();
  after.of(letter);
  assert.ok(after.of('[{('.repeat(5000)).length < 1100);
});
