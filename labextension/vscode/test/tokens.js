/** Reads `[{"language", "text"}]` and writes for each the tokens as `[scope, text]`, as VS Code sees them. */
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { INITIAL, Registry, parseRawGrammar } = require('vscode-textmate');
const { OnigScanner, OnigString, loadWASM } = require('vscode-oniguruma');

const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm')).buffer;
const onigLib = loadWASM(wasm).then(() => ({
  createOnigScanner: patterns => new OnigScanner(patterns),
  createOnigString: text => new OnigString(text)
}));
const file = scope => path.join(__dirname, '..', 'syntaxes', `${scope.slice('source.'.length)}.tmLanguage.json`);
const registry = new Registry({ onigLib, loadGrammar: async scope => parseRawGrammar(fs.readFileSync(file(scope), 'utf8'), file(scope)) });

async function main() {
  const found = [];
  for (const { language, text } of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const grammar = await registry.loadGrammar(`source.${language}`);
    const tokens = [];
    let stack = INITIAL;
    for (const line of text.split('\n')) {
      const told = grammar.tokenizeLine(line, stack);
      stack = told.ruleStack;
      tokens.push(...told.tokens.map(each => [each.scopes.at(-1), line.slice(each.startIndex, each.endIndex)]));
    }
    found.push(tokens);
  }
  process.stdout.write(JSON.stringify(found));
}

main();
