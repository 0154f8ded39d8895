/**
 * The two languages as CodeMirror knows them: parser, colours, folding, indentation, comments and brackets.
 *
 * `support("tc").language` parses `%%tc` cells, `.tc` files and fenced blocks alike: a magic line is optional.
 */
import { continuedIndent, delimitedIndent, foldInside, foldNodeProp, indentNodeProp, LRLanguage, LanguageSupport } from '@codemirror/language';
import { hiddenHighlight } from './highlight.js';
import { parser as sacParser } from './sac.parser.js';
import { parser as tcParser } from './tc.parser.js';

export type LanguageName = 'tc' | 'sac';

const delimited = {
  'Block Comprehension WithLoop': delimitedIndent({ closing: '}' }),
  'Params ArgList Arguments Results Iterators Dims Paren': delimitedIndent({ closing: ')', align: false }),
  'Statement Assignment Partition': continuedIndent()
};

const tc = LRLanguage.define({
  name: 'tc',
  parser: tcParser.configure({
    props: [indentNodeProp.add(delimited), foldNodeProp.add({ Block: foldInside })]
  }),
  languageData: {
    commentTokens: { line: '#' },
    closeBrackets: { brackets: ['(', '[', '{'] },
    indentOnInput: /^\s*\}$/
  }
});

const sac = LRLanguage.define({
  name: 'sac',
  parser: sacParser.configure({
    props: [indentNodeProp.add(delimited), foldNodeProp.add({ 'Block Comprehension WithLoop': foldInside })]
  }),
  languageData: {
    commentTokens: { line: '//', block: { open: '/*', close: '*/' } },
    closeBrackets: { brackets: ['(', '[', '{'] },
    indentOnInput: /^\s*\}$/
  }
});

export const languages: Readonly<Record<LanguageName, LRLanguage>> = { tc, sac };

/** The same for cells, whose colours `colours.ts` draws. */
export const cellLanguages: Readonly<Record<LanguageName, LRLanguage>> = {
  tc: tc.configure({ props: [hiddenHighlight.tc] }),
  sac: sac.configure({ props: [hiddenHighlight.sac] })
};

export function support(name: LanguageName): LanguageSupport {
  return new LanguageSupport(languages[name]);
}
