/**
 * Static HTML of a card, rebuilt element by element from an allow-list. What is not on the list is left out, with its text kept
 * (for scripts and styles: dropped). No URL survives except `#...` and `data:image/...`. Styles are lists of known properties with
 * values of known shapes; classes, ids and data attributes are our own, since those of the page look and act as it says.
 */
import { Legible, OMITTED } from './legible.js';

const HTML = new Set(
  (
    'a abbr b blockquote br caption code col colgroup dd details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img kbd li mark ol p pre ' +
    's samp section small span strong sub summary sup table tbody td tfoot th thead tr u ul var'
  ).split(' ')
);
/** None that is drawn wherever others name it, as markers and clips are: a few letters of those draw millions of times. */
const SVG = new Set(
  'svg g title desc path rect circle ellipse line polyline polygon text tspan'.split(' ')
);
const MATH = new Set('math mrow mi mn mo mtext mfrac msub msup mspace'.split(' '));
const DROPPED = new Set('script style iframe object embed template noscript link meta base form input button textarea select foreignobject animate set'.split(' '));
const ATTRIBUTES = new Set(
  (
    'colspan rowspan scope open lang start align width height datetime ' +
    'viewbox x y x1 x2 y1 y2 cx cy r rx ry dx dy d points transform fill stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin ' +
    'stroke-opacity fill-opacity opacity font-size font-family font-weight text-anchor dominant-baseline preserveaspectratio ' +
    'paint-order'
  ).split(' ')
);
const SPANS = new Set(['colspan', 'rowspan']);
/** Attributes that a page draws, in the place of a picture and as a hint, or reads aloud. */
const DRAWN = new Set(['alt', 'title', 'aria-label']);
/** What is read aloud of an element itself. Others speak by themselves, hide the page behind a dialog, or take parts of it, by their ids, for their own. */
const STATES = new Set('aria-hidden aria-current aria-pressed aria-selected aria-expanded aria-invalid'.split(' '));
const ROLES = new Set('img group figure list listitem table row cell columnheader rowheader note math none presentation'.split(' '));
/** Data attributes by which a drawing says what it shows; those that a control listens to, ours or the page's, are not among them. */
const FACTS = new Set(
  (
    'arrow arrows axes axis block box chart columns count dots down element exact gaps holds hull lattice listing lit loops now outside partition ' +
    'phases point points refused refused-points relation roof samples span stages step sweep tensor tensors trial tvm witness'
  )
    .split(' ')
    .map(name => `data-${name}`)
);
const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';
const MATH_NAMESPACE = 'http://www.w3.org/1998/Math/MathML';
const MAX_NODES = 50_000;
const MAX_TEXT = 2_000_000;
const MAX_LEVELS = 100;
/** Characters that are drawn: of texts, hints included, and of the outlines of drawings, where lines cross each other. */
const MOST_TEXT = 500_000;
const MOST_OUTLINES = 150_000;
const LONGEST_HINT = 2000;
/** Dashes of all lines: Chromium draws a million of them in a second, whether they are seen or not. */
const MOST_DASHES = 500_000;
/** What is drawn half transparent is a picture of its own first, as large as the drawing: so much as this many elements. */
const TRANSPARENT = 50;
/** Attributes of one element that are looked at. */
const MAX_ATTRIBUTES = 50;
const SPAN = /^\d{1,3}$/;
/** What may have dashes: nothing that hands them on to what is inside. */
const OUTLINED = new Set('path rect circle ellipse line polyline polygon'.split(' '));
const GEOMETRY = 'd points x y x1 x2 y1 y2 cx cy r rx ry width height'.split(' ');
const OUTLINES = new Set(['d', 'points']);
const RETURNS = /[stST]|[zZ](?!\s*(?:M|$))/;
const UNITS = /[a-df-z%]/i;
const NUMBER = /(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi;
/** The longest line around numbers, for each unit of their sum: a circle. */
const LONGEST_LINE = 2 * Math.PI;
const DISPLAYS = new Set('block inline inline-block flex inline-flex grid inline-grid table inline-table table-row table-cell list-item contents none'.split(' '));
const LONGEST_WORD = 12;
const LONGEST_CALL = 200;

const COLOUR = /^(?:#[0-9a-f]{3,8}|[a-z]+|(?:rgba?|hsla?)\([\d\s.,%/]+\)|var\(--jp-[\w-]+(?:, ?[#\w]+)?\))$/i;
const MIX = /^color-mix\(in srgb, ?(#[0-9a-f]{3,8}|[a-z]+|var\(--jp-[\w-]+\))( \d+%)?, ?(#[0-9a-f]{3,8}|[a-z]+)( \d+%)?\)$/i;
const CALL = /^(?:translate|rotate|scale|matrix|rgba?|hsl)\([\d\s.,%e-]*\)/i;
const LENGTH = /^(?:0|auto|normal|none|inherit|-?\.?\d[\d.]{0,7}(?:px|em|rem|ch|ex|%)?)$/i;
const CHOSEN = 'var\\(--jp-[\\w-]+, ?\\d{1,3}px\\)';
const FONT_SIZE = new RegExp(`^max\\((?:(?:${CHOSEN}|calc\\(${CHOSEN} - \\dpx\\))(?:, ?(?=[vc])|(?=\\))))+\\)$`);
const GROWING = /^clamp\(1em, ?\d{1,3}(?:\.\d{1,2})?cqi, ?1\.\dem\)$/;
const POSITIVE = /^(?!-)/;
const WORD = /^[a-z-]+$/i;
const FONT = /^[\w\s,'"-]*$/;
const MOST_WORDS = 8;
const words = (value: string): string[] => {
  const found = value.match(/[\w#.%+-]*\([^()]*(?:\([^()]*\)[^()]*)*\)|[^\s]+/g) ?? [];
  return found.length > MOST_WORDS ? [value] : found;
};
const isColour = (value: string): boolean => COLOUR.test(value) || MIX.test(value);
const isLength = (value: string): boolean => LENGTH.test(value) && POSITIVE.test(value);
const isLine = (value: string): boolean => words(value).every(word => isColour(word) || isLength(word));
const isWord = (value: string): boolean => WORD.test(value);
const isFont = (value: string): boolean => FONT.test(value.replace(/var\(--jp-[\w-]+(?:,([^()]*))?\)/g, '$1'));
const lengths = (value: string): boolean => words(value).every(isLength);

/** What each property may be; what is not here takes no part in the layout of anything but its own box. */
const PROPERTIES: ReadonlyMap<string, (value: string) => boolean> = new Map(Object.entries({
  ...Object.fromEntries(['color', 'background', 'background-color', 'border-color', 'fill', 'stroke', 'accent-color', 'text-decoration-color'].map(name => [name, isColour])),
  ...Object.fromEntries(['border', 'border-top', 'border-right', 'border-bottom', 'border-left', 'outline', 'text-decoration'].map(name => [name, isLine])),
  ...Object.fromEntries(
    (
      'margin margin-top margin-right margin-bottom margin-left padding padding-top padding-right padding-bottom padding-left width height min-width min-height ' +
      'max-width max-height gap row-gap column-gap border-radius border-width border-spacing font-size line-height letter-spacing opacity stroke-width text-indent ' +
      'text-underline-offset tab-size vertical-align flex flex-basis flex-grow flex-shrink fill-opacity stroke-opacity'
    )
      .split(' ')
      .map(name => [name, (value: string) => lengths(value) || (name === 'vertical-align' && isWord(value))])
  ),
  ...Object.fromEntries(
    (
      'overflow overflow-x overflow-y white-space text-align font-style border-style border-collapse text-transform word-break overflow-wrap table-layout ' +
      'flex-wrap flex-direction align-items align-self justify-content box-sizing cursor visibility text-anchor dominant-baseline list-style-type paint-order'
    )
      .split(' ')
      .map(name => [name, (value: string) => words(value).every(isWord)])
  ),
  display: value => DISPLAYS.has(value.trim().toLowerCase()), // Chromium takes seconds for some thousand ruby texts
  'font-size': value => lengths(value) || FONT_SIZE.test(value) || GROWING.test(value),
  'container-type': value => value === 'inline-size',
  'font-weight': value => /^[\w]+$/.test(value),
  'font-family': isFont
}));

export function sanitized(html: string): DocumentFragment {
  const source = new DOMParser().parseFromString(html.slice(0, MAX_TEXT), 'text/html');
  const fragment = document.createDocumentFragment();
  const budget = { left: MAX_NODES, characters: MOST_TEXT, outlines: MOST_OUTLINES, dashes: MOST_DASHES, text: new Legible() };
  copyChildren(source.body, fragment, budget, 0);
  if (budget.left <= 0 || budget.characters <= 0 || budget.outlines <= 0 || html.length > MAX_TEXT) {
    fragment.append(document.createTextNode(`(${OMITTED})`));
  }
  return fragment;
}

/** What may still be copied. */
interface Budget {
  left: number;
  characters: number;
  outlines: number;
  dashes: number;
  readonly text: Legible;
}

function drawnText(text: string, most: number, budget: Budget): string {
  const begun = text.slice(0, Math.max(0, Math.min(most, budget.characters)));
  budget.characters -= begun.length;
  return budget.text.of(begun);
}

function copyChildren(from: Node, to: Node, budget: Budget, level: number): void {
  if (level > MAX_LEVELS) {
    return;
  }
  for (const child of Array.from(from.childNodes)) {
    if (budget.left-- <= 0) {
      return;
    }
    if (child.nodeType === Node.TEXT_NODE) {
      to.appendChild(document.createTextNode(drawnText(child.textContent ?? '', MOST_TEXT, budget)));
    } else if (child instanceof Element) {
      copyElement(child, to, budget, level);
    }
  }
}

function copyElement(element: Element, to: Node, budget: Budget, level: number): void {
  const name = element.localName.toLowerCase();
  if (DROPPED.has(name)) {
    return;
  }
  const space = element.namespaceURI;
  const known = space === SVG_NAMESPACE ? SVG : space === MATH_NAMESPACE ? MATH : HTML;
  if (!known.has(name)) {
    copyChildren(element, to, budget, level + 1);
    return;
  }
  const copy = document.createElementNS(known === HTML ? 'http://www.w3.org/1999/xhtml' : space, element.localName);
  // not `attributes`, which finds each of n attributes by looking at all before it
  for (const attribute of element.getAttributeNames().slice(0, MAX_ATTRIBUTES)) {
    const kept = keptValue(element, name, attribute.toLowerCase(), element.getAttribute(attribute) ?? '', budget);
    if (kept !== null) {
      copy.setAttribute(attribute, kept);
    }
  }
  copyChildren(element, copy, budget, level + 1);
  to.appendChild(copy);
}

/** What is left of the value of an attribute; `null`: nothing. What it makes the page draw is taken off the budget. */
function keptValue(element: Element, tag: string, name: string, value: string, budget: Budget): string | null {
  if (name === 'style') {
    const kept = style(value);
    budget.left -= /(?:^|; )opacity:/.test(kept) ? TRANSPARENT : 0;
    return kept;
  }
  if (name === 'class') {
    return value.split(/\s+/).filter(own).join(' ');
  }
  if (!allowed(name, value)) {
    return null;
  }
  if (DRAWN.has(name)) {
    return drawnText(value, LONGEST_HINT, budget);
  }
  if (OUTLINES.has(name)) {
    budget.outlines -= value.length;
    return budget.outlines < 0 ? null : value;
  }
  if (name === 'stroke-dasharray') {
    budget.dashes -= dashes(element, tag, value);
    return budget.dashes < 0 ? null : value;
  }
  budget.left -= SPANS.has(name) ? Number(value) : name === 'opacity' ? TRANSPARENT : 0; // a cell counts as the columns and rows that it takes
  return value;
}

/**
 * The most dashes that an element can have; infinitely many where its numbers do not say how long its line is: with units, in a style, or in
 * a path that comes back to a place by a letter.
 */
function dashes(element: Element, tag: string, pattern: string): number {
  if (!/\d/.test(pattern)) {
    return 0;
  }
  const [path = '', points = '', ...sides] = GEOMETRY.map(name => element.getAttribute(name) ?? '');
  const plain = !RETURNS.test(path) && !UNITS.test([pattern, ...sides].join(' ')) && element.getAttribute('style') === null;
  const parts = numbers(pattern);
  const found = (LONGEST_LINE * total([path, points, ...sides].flatMap(numbers)) * parts.length) / total(parts);
  return OUTLINED.has(tag) && plain && Number.isFinite(found) ? found : Infinity;
}

function numbers(value: string): number[] {
  return (value.match(NUMBER) ?? []).map(Number);
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

export function allowed(name: string, value: string): boolean {
  if (name === 'href') {
    return value.startsWith('#');
  }
  if (name === 'src') {
    return /^data:image\/(png|jpeg|gif|webp);/i.test(value);
  }
  if (name === 'id') {
    return own(value);
  }
  if (SPANS.has(name)) {
    return SPAN.test(value); // pages read the digits of `65534e-9`
  }
  if (name === 'role') {
    return ROLES.has(value);
  }
  if (DRAWN.has(name) || STATES.has(name) || name.startsWith('data-tc') || FACTS.has(name)) {
    return true;
  }
  // a function of CSS in an attribute of a drawing may fetch; what is left are places and colours
  return ATTRIBUTES.has(name) && !value.includes('\\') && callsOurs(value);
}

/** Whether every function in a value is a move or a colour; the time is that of reading it once. */
function callsOurs(value: string): boolean {
  for (let open = value.indexOf('('); open >= 0; open = value.indexOf('(', open + 1)) {
    const [word] = /\w*$/.exec(value.slice(Math.max(0, open - LONGEST_WORD), open)) ?? [''];
    if (word && !CALL.test(value.slice(open - word.length, open + LONGEST_CALL))) {
      return false;
    }
  }
  return true;
}

function own(name: string): boolean {
  return /^tc(?:-[\w-]*)?$/.test(name);
}

/** The declarations that are allowed, written anew. */
export function style(text: string): string {
  const kept: string[] = [];
  for (const declaration of text.slice(0, 2000).split(';')) {
    const [, property, value] = /^([a-z-]+)\s*:\s*([^\\/*!<>@{}\s][^\\/*!<>@{}]{0,199})$/i.exec(declaration.trim()) ?? [];
    if (property !== undefined && PROPERTIES.get(property.toLowerCase())?.(value)) {
      kept.push(`${property.toLowerCase()}: ${value}`);
    }
  }
  return kept.join('; ');
}
