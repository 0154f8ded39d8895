import { readFileSync } from 'node:fs';
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
