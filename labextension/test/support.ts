import { readFileSync } from 'node:fs';
import { getStyleTags, tagHighlighter, tags as t } from '@lezer/highlight';
import type { SyntaxNodeRef } from '@lezer/common';
import { languages, type LanguageName } from '../src/grammar/language.js';
import { outline } from '../src/grammar/outline.js';
import { syntaxProblems, type Problem } from '../src/grammar/syntax.js';

export interface Example {
  readonly title: string;
  readonly accept: boolean;
  readonly text: string;
  readonly outline: string[] | null;
}

export function problems(language: LanguageName, text: string): Problem[] {
  return syntaxProblems(languages[language].parser.parse(text), language, (from, to) => text.slice(from, to));
}

export function names(language: LanguageName, text: string): string[] {
  return outline(languages[language].parser.parse(text), (from, to) => text.slice(from, to));
}

// the most special of the tags of a token decides, as it does in the styles of the editor
const kinds = tagHighlighter([
  { tag: t.meta, class: 'magic' },
  { tag: t.comment, class: 'comment' },
  { tag: t.keyword, class: 'keyword' },
  { tag: t.function(t.definition(t.variableName)), class: 'def' },
  { tag: t.function(t.variableName), class: 'call' },
  { tag: t.definition(t.variableName), class: 'definition' },
  { tag: t.special(t.variableName), class: 'index' },
  { tag: t.standard(t.variableName), class: 'standard' },
  { tag: t.variableName, class: 'name' },
  { tag: t.bool, class: 'bool' },
  { tag: t.atom, class: 'constant' },
  { tag: t.number, class: 'number' },
  { tag: t.string, class: 'string' },
  { tag: t.operator, class: 'operator' },
  { tag: t.punctuation, class: 'punctuation' }
]);

/** Every token of a text with its class: `[class, text]`, in text order. A leaf without a style has that of the node around it. */
export function tokens(language: LanguageName, text: string): [string, string][] {
  const found: [string, string][] = [];
  languages[language].parser.parse(text).iterate({
    enter: ref => {
      if (ref.node.firstChild === null && ref.to > ref.from) {
        found.push([kindOf(ref), text.slice(ref.from, ref.to)]);
      }
    }
  });
  return found;
}

function kindOf(ref: SyntaxNodeRef): string {
  const style = getStyleTags(ref) ?? (ref.node.parent && getStyleTags(ref.node.parent));
  return style ? (kinds.style(style.tags) ?? 'none') : 'none';
}

export function corpus(language: LanguageName): Example[] {
  const folder = new URL('../../corpus/', import.meta.url);
  const parts = readFileSync(new URL(`${language}.txt`, folder), 'utf8').split(/^=== /m).slice(1);
  return parts.map(part => {
    const [head, ...rest] = part.split('\n');
    const [verdict, title] = head.split(': ');
    const [text, wanted] = rest.join('\n').split('--- outline\n');
    return { title, accept: verdict === 'accept', text, outline: wanted?.trim().split('\n') ?? null };
  });
}
