import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowed, style } from '../src/sanitize.js';

const LONG = 2_000_000;

test('functions in a drawing are moves and colours', () => {
  for (const value of ['translate(3 4) rotate(90)', 'rgba(1, 2, 3, .5)', 'M 1 (2)', 'matrix(1 0 0 1 0 0)', '']) {
    assert.ok(allowed('fill', value), value);
  }
  for (const value of ['url(http://x)', 'url(#other)', 'url(#tc-arrow)', 'xurl(#tc-a)', 'aaaaaaaaaaaaaaaargb(1)', 'image-set(url(x))', 'expression(1)', 'rgb(calc(1))', 'u\\rl(x)']) {
    assert.ok(!allowed('fill', value), value);
  }
});

test('styles hold known properties only', () => {
  assert.equal(style(' color : red ; constructor: x; position: fixed; __proto__: y; margin:1px 2px'), 'color: red; margin: 1px 2px');
  for (const size of ['max(var(--jp-ui-font-size1,13px),var(--jp-code-font-size, 13px))', 'max(var(--jp-a,13px),calc(var(--jp-b,14px) - 1px))', 'clamp(1em,2.62cqi,1.5em)']) {
    assert.equal(style(`font-size:${size}`), `font-size: ${size}`);
  }
  for (const size of ['max(var(--x,13px))', 'max(9999px, 1px)', 'max(var(--jp-a,9999px))', 'max(calc(var(--jp-a,9px) * 9))', 'max(calc(9px))', 'max(var(--jp-a,9px),)']) {
    assert.equal(style(`font-size: ${size}`), '');
  }
});

test('a long value takes the time of reading it', () => {
  assert.ok(allowed('fill', 'a'.repeat(LONG)));
  assert.ok(!allowed('fill', 'a('.repeat(LONG / 2)));
  assert.ok(allowed('fill', '('.repeat(LONG)));
  assert.equal(style(`color:${' '.repeat(1900)}red`), 'color: red');
});
