/** Reads `[{language, text}]` from standard input, writes `[{problems, outline}]`: the editor's verdict on each text. */
import { readFileSync } from 'node:fs';
import type { LanguageName } from '../src/grammar/language.js';
import { names, problems } from './support.js';

const asked = JSON.parse(readFileSync(0, 'utf8')) as { language: LanguageName; text: string }[];
const told = asked.map(({ language, text }) => ({ problems: problems(language, text), outline: names(language, text) }));
process.stdout.write(JSON.stringify(told));
