import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowed, sanitized, style } from '../src/sanitize.js';

const LONG = 2_000_000;
const DRAWING = new Set('svg g text line path rect circle polyline'.split(' '));

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

test('dashes are kept where their number is known and small', () => {
  const dash = 'stroke-dasharray';
  const line = { x1: '0', y1: '0', x2: '300', y2: '40' };
  for (const [tag, attributes] of [
    ['line', { ...line, [dash]: '4 3' }],
    ['path', { d: 'M1 2Q3 4 50 60', [dash]: '4 3' }],
    ['path', { d: 'M1 2h3v4h-3zM10 20h3v4h-3z', [dash]: '1 2' }],
    ['rect', { x: '1', y: '2', width: '30', height: '40', [dash]: '2 1.5' }],
    ['line', { ...line, [dash]: '' }],
    ['line', { ...line, [dash]: 'none' }]
  ] as const) {
    assert.ok(drawnOf(tag, attributes).has(dash), JSON.stringify(attributes));
  }
  for (const [tag, attributes] of [
    ['line', { ...line, [dash]: '0.001' }],
    ['line', { ...line, x2: '1e7', [dash]: '4 3' }],
    ['line', { ...line, x2: '9999%', [dash]: '4 3' }],
    ['line', { ...line, [dash]: '0' }],
    ['line', { [dash]: '0' }],
    ['line', { ...line, [dash]: '.001px' }],
    ['rect', { style: 'width: 9999px', [dash]: '4 3' }],
    ['path', { d: `M9999 0${'L0 0z'.repeat(99)}`, [dash]: '4 3' }],
    ['path', { d: `M9999 0H0Q9999 0 0 0${'T0 0'.repeat(99)}`, [dash]: '4 3' }],
    ['circle', { r: '1e6', [dash]: '4 3' }],
    ['g', { [dash]: '4 3' }],
    ['svg', { [dash]: '4 3' }],
    ['text', { [dash]: '4 3' }]
  ] as const) {
    assert.ok(!drawnOf(tag, attributes).has(dash), JSON.stringify(attributes));
  }
  const many = sanitizedOf([element('line', { [dash]: '0' }), ...Array.from({ length: 9000 }, () => element('line', { ...line, [dash]: '4 3' }))]);
  const kept = many.filter(each => each.attributes.has(dash)).length;
  assert.ok(kept === 0, 'nothing has dashes behind what has too many');
});

test('a drawing has so many outlines, and so much that is half transparent', () => {
  const zigzag = '1 1 700 700 '.repeat(1000);
  const paths = sanitizedOf(Array.from({ length: 200 }, () => element('path', { d: `M${zigzag}` })));
  assert.ok(paths.filter(each => each.attributes.has('d')).length < 30);
  const points = sanitizedOf([element('polyline', { points: zigzag.repeat(100) })]);
  assert.ok(!points[0]?.attributes.has('points'));
  for (const attributes of [{ opacity: '.5' }, { style: 'color:red;OPACITY:.5' }] as Record<string, string>[]) {
    const found = sanitizedOf(Array.from({ length: 15_000 }, () => element('g', attributes))).length;
    assert.ok(found > 500 && found < 1500, String(found));
  }
  assert.equal(sanitizedOf(Array.from({ length: 15_000 }, () => element('rect', { style: 'fill-opacity: 1', 'fill-opacity': '.5' }))).length, 15_000);
});

test('hints and what is read aloud are short', () => {
  for (const name of ['title', 'alt', 'aria-label']) {
    assert.equal(drawnOf('img', { [name]: 'x'.repeat(LONG) }).get(name)?.length, 2000);
  }
});

test('nothing speaks by itself, hides the page, or takes parts of it for its own', () => {
  for (const name of 'owns controls labelledby describedby details flowto activedescendant errormessage live atomic busy modal relevant roledescription'.split(' ')) {
    assert.ok(!allowed(`aria-${name}`, 'main'), name);
  }
  for (const role of ['alert', 'alertdialog', 'dialog', 'status', 'log', 'application', 'main', 'navigation', 'button', 'img alert', '']) {
    assert.ok(!allowed('role', role), role);
  }
  assert.ok(allowed('role', 'img') && allowed('aria-hidden', 'true') && allowed('aria-current', 'step'));
});

test('a display is one that a page draws fast', () => {
  for (const value of ['ruby', 'ruby-text', 'block ruby', '-webkit-box', 'math', 'run-in']) {
    assert.equal(style(`display:${value}`), '', value);
  }
  assert.equal(style('display:flex;DISPLAY: Inline-Block'), 'display: flex; display: Inline-Block');
});

/** As much of a page as the copying asks for. */
class Part {
  readonly nodeType = 1;
  readonly childNodes: Part[] = [];
  constructor(
    readonly localName: string,
    readonly attributes = new Map<string, string>()
  ) {}
  get namespaceURI(): string {
    return `http://www.w3.org/${DRAWING.has(this.localName) ? '2000/svg' : '1999/xhtml'}`;
  }
  getAttributeNames = (): string[] => [...this.attributes.keys()];
  getAttribute = (name: string): string | null => this.attributes.get(name) ?? null;
  setAttribute = (name: string, value: string): unknown => this.attributes.set(name, value);
  appendChild = (child: Part): unknown => this.childNodes.push(child);
  append = (): void => undefined;
}

function element(name: string, attributes: Record<string, string>): Part {
  return new Part(name, new Map(Object.entries(attributes)));
}

/** The attributes that one element has in a card. */
function drawnOf(tag: string, attributes: Record<string, string>): Map<string, string> {
  const [found] = sanitizedOf([element(tag, attributes)]);
  assert.ok(found, tag);
  return found.attributes;
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
