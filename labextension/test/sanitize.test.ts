import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowed, sanitized, style } from '../src/sanitize.js';

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

test('a cell takes a thousand columns at most, as a page reads it', () => {
  for (const [value, kept] of [['3', true], ['0', true], ['999', true], ['65534e-9', false], ['1e3', false], ['-1', false], ['99999', false], ['1 ', false], ['', false]] as const) {
    assert.equal(allowed('rowspan', value), kept, value);
    assert.equal(allowed('colspan', value), kept, value);
  }
});

test('all words of a style are looked at', () => {
  const many = '1px '.repeat(8);
  for (const property of ['border', 'padding', 'stroke-dasharray', 'display']) {
    assert.equal(style(`${property}: ${many}image-set('x' 1x)`), '');
  }
});

test('what cells span and what stands in the place of pictures counts', () => {
  const drawn = sanitizedOf([
    element('img', { alt: `a${'\u0301'.repeat(100_000)}`, title: '\u0e33'.repeat(100_000) }),
    ...Array.from({ length: 60 }, () => element('td', { colspan: '999' })),
    element('b', {})
  ]);
  assert.ok((drawn[0]?.attributes.get('alt') ?? '').length < 1000);
  assert.ok((drawn[0]?.attributes.get('title') ?? '').length < 1000);
  assert.ok(drawn.length > 40 && drawn.length < 60);
});

/** As much of a page as the copying asks for. */
class Part {
  readonly nodeType = 1;
  readonly namespaceURI = 'http://www.w3.org/1999/xhtml';
  readonly childNodes: Part[] = [];
  constructor(
    readonly localName: string,
    readonly attributes = new Map<string, string>()
  ) {}
  getAttributeNames = (): string[] => [...this.attributes.keys()];
  getAttribute = (name: string): string | null => this.attributes.get(name) ?? null;
  setAttribute = (name: string, value: string): unknown => this.attributes.set(name, value);
  appendChild = (child: Part): unknown => this.childNodes.push(child);
  append = (): void => undefined;
}

function element(name: string, attributes: Record<string, string>): Part {
  return new Part(name, new Map(Object.entries(attributes)));
}

function sanitizedOf(children: Part[]): Part[] {
  const body = new Part('body');
  body.childNodes.push(...children);
  Object.assign(globalThis, {
    Element: Part,
    Node: { TEXT_NODE: 3 },
    DOMParser: class {
      parseFromString = (): unknown => ({ body });
    },
    document: { createDocumentFragment: () => new Part('#'), createElementNS: (_: string, name: string) => new Part(name), createTextNode: () => new Part('#text') }
  });
  return (sanitized('') as unknown as Part).childNodes;
}
