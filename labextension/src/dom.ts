/** Small helpers to build elements: all text goes in as text, never as HTML, and nothing that takes long to draw. */
import { Legible } from './legible.js';

export type Child = Node | string | null | undefined | false;
type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name, value);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  const given = children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false);
  element.append(...given.map(child => (typeof child === 'string' ? new Legible().of(child) : child)));
  return element;
}

/** Text in which `` `x` `` marks code, as nodes. */
export function prose(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  new Legible().of(text).split('`').forEach((part, index, parts) => {
    const closed = index % 2 === 1 && index < parts.length - 1;
    fragment.append(closed ? h('code', {}, part) : index % 2 === 1 ? '`' + part : part);
  });
  return fragment;
}
