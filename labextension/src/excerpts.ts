/**
 * Messages of the package in outputs of text: lines of a source, and the marks under them, are not broken, since a mark stands under its
 * character or says nothing. The output is scrolled instead; all other lines are broken as before.
 */
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

/** What outputs of text are drawn for: values and streams, errors. */
export const TEXTS = ['text/plain', 'application/vnd.jupyter.stdout', 'application/vnd.jupyter.stderr'] as const;
const KEPT = 'tc-excerpt';
/** Characters of an output in which messages are looked for, and parts that are kept. */
const LONGEST = 200_000;
const MOST = 500;
/** The place of a message, which stands above its lines. */
const PLACE = /^ *--> .*:\d+:\d+$/m;
const LINES = /^(?: *\d* \|(?: .*)?(?:\n|$))(?:(?: *\d* \|(?: .*)?|\.\.\.)(?:\n|$))*/gm;

/** The parts of a text that are lines of a source with their marks. */
export function excerpts(text: string): { readonly from: number; readonly to: number }[] {
  if (text.length > LONGEST || !PLACE.test(text)) {
    return [];
  }
  return [...text.matchAll(LINES)].slice(0, MOST).map(({ index, 0: found }) => ({ from: index, to: index + found.trimEnd().length }));
}

/** A factory whose outputs keep the lines of messages. */
export function keeping(factory: IRenderMime.IRendererFactory, mime: string): IRenderMime.IRendererFactory {
  return {
    ...factory,
    mimeTypes: [mime],
    createRenderer: options => {
      const renderer = factory.createRenderer(options);
      const render = renderer.renderModel.bind(renderer);
      renderer.renderModel = model => {
        const done = render(model);
        keep(renderer.node);
        return done.then(() => keep(renderer.node));
      };
      return renderer;
    }
  };
}

function keep(node: HTMLElement): void {
  for (const pre of Array.from(node.getElementsByTagName('pre'))) {
    const parts = pre.getElementsByClassName(KEPT).length > 0 ? [] : excerpts(pre.textContent ?? '');
    if (parts.length > 0) {
      const texts = textsOf(pre);
      // from the last to the first: what stands before a part stays where it is
      for (const { from, to } of parts.reverse()) {
        wrap(placeIn(texts, from), placeIn(texts, to));
      }
    }
  }
}

function wrap(from: [Text, number], to: [Text, number]): void {
  const range = document.createRange();
  range.setStart(...from);
  range.setEnd(...to);
  const kept = document.createElement('span');
  kept.className = KEPT;
  kept.append(range.extractContents());
  range.insertNode(kept);
}

interface Placed {
  readonly start: number;
  readonly text: Text;
}

function textsOf(pre: HTMLElement): Placed[] {
  const found: Placed[] = [];
  const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
  for (let start = 0, text = walker.nextNode(); text !== null; text = walker.nextNode()) {
    found.push({ start, text: text as Text });
    start += (text as Text).length;
  }
  return found;
}

/** The last text that begins at or before a place. */
function placeIn(texts: readonly Placed[], at: number): [Text, number] {
  let low = 0;
  let high = texts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (texts[middle].start <= at) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const { start, text } = texts[low];
  return [text, at - start];
}
