/**
 * Static HTML of a card, rebuilt element by element from an allow-list. What is not on the list is left out, with its text kept
 * (for scripts and styles: dropped). No URL survives except `#...` and `data:image/...`.
 */
const HTML = new Set(
  (
    'a abbr b blockquote br caption code col colgroup dd details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img kbd li mark ol p pre ' +
    's samp section small span strong sub summary sup table tbody td tfoot th thead tr u ul var'
  ).split(' ')
);
const SVG = new Set(
  'svg g defs title desc path rect circle ellipse line polyline polygon text tspan marker use symbol clippath lineargradient radialgradient stop pattern'.split(' ')
);
const MATH = new Set('math mrow mi mn mo mtext mfrac msub msup mspace'.split(' '));
const DROPPED = new Set('script style iframe object embed template noscript link meta base form input button textarea select foreignobject animate set'.split(' '));
const ATTRIBUTES = new Set(
  (
    'class id title role colspan rowspan scope open dir lang start align width height alt datetime ' +
    'viewbox x y x1 x2 y1 y2 cx cy r rx ry dx dy d points transform fill stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin ' +
    'stroke-opacity fill-opacity opacity font-size font-family font-weight text-anchor dominant-baseline offset stop-color stop-opacity marker-end ' +
    'marker-start marker-mid refx refy markerwidth markerheight orient markerunits clip-path patternunits gradientunits preserveaspectratio style'
  ).split(' ')
);
const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';
const MATH_NAMESPACE = 'http://www.w3.org/1998/Math/MathML';
const MAX_NODES = 50_000;

export function sanitized(html: string): DocumentFragment {
  const source = new DOMParser().parseFromString(html, 'text/html');
  const fragment = document.createDocumentFragment();
  const budget = { left: MAX_NODES };
  copyChildren(source.body, fragment, budget);
  if (budget.left <= 0) {
    fragment.append(document.createTextNode('(the rest is left out: too large)'));
  }
  return fragment;
}

function copyChildren(from: Node, to: Node, budget: { left: number }): void {
  for (const child of Array.from(from.childNodes)) {
    if (budget.left-- <= 0) {
      return;
    }
    if (child.nodeType === Node.TEXT_NODE) {
      to.appendChild(document.createTextNode(child.textContent ?? ''));
    } else if (child instanceof Element) {
      copyElement(child, to, budget);
    }
  }
}

function copyElement(element: Element, to: Node, budget: { left: number }): void {
  const name = element.localName.toLowerCase();
  if (DROPPED.has(name)) {
    return;
  }
  const space = element.namespaceURI;
  const known = space === SVG_NAMESPACE ? SVG : space === MATH_NAMESPACE ? MATH : HTML;
  if (!known.has(name)) {
    copyChildren(element, to, budget);
    return;
  }
  const copy = document.createElementNS(known === HTML ? 'http://www.w3.org/1999/xhtml' : space, element.localName);
  for (const { name: attribute, value } of Array.from(element.attributes)) {
    if (allowed(attribute.toLowerCase(), value)) {
      copy.setAttribute(attribute, value);
    }
  }
  copyChildren(element, copy, budget);
  to.appendChild(copy);
}

function allowed(name: string, value: string): boolean {
  if (name === 'href') {
    return value.startsWith('#');
  }
  if (name === 'src') {
    return /^data:image\/(png|jpeg|gif|svg\+xml|webp);/i.test(value);
  }
  if (!ATTRIBUTES.has(name) && !name.startsWith('aria-') && !name.startsWith('data-')) {
    return false;
  }
  // `url(...)` may fetch, `position: fixed` may cover the page
  return !/url\s*\((?!\s*['"]?#)|expression|@import|position\s*:|\\/i.test(value) || name === 'aria-label' || name === 'title';
}
