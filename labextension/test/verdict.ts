/** Reads `[{language, text, tokens}]` from standard input, writes `[{problems, tokens}]`: the editor's verdict on each text. */
import { readFileSync } from 'node:fs';
import type { LanguageName } from '../src/grammar/language.js';
import { problems, tokens } from './support.js';

const asked = JSON.parse(readFileSync(0, 'utf8')) as { language: LanguageName; text: string; tokens: boolean }[];
const told = asked.map(({ language, text, tokens: wanted }) => ({ problems: problems(language, text), tokens: wanted ? tokens(language, text) : [] }));
process.stdout.write(JSON.stringify(told));
