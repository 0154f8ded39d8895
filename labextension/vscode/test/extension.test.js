/** The extension in a stand-in for VS Code: when it starts the server, how, and what it says if that fails. */
'use strict';
const assert = require('node:assert/strict');
const Module = require('node:module');
const { test } = require('node:test');

function load({ trusted = true, fails = false } = {}) {
  const seen = { clients: [], warnings: [], commands: {}, grant: null };
  class LanguageClient {
    constructor(id, name, server, options) {
      Object.assign(this, { server, options, running: false });
      seen.clients.push(this);
    }
    async start() {
      if (fails) throw new Error('spawn ENOENT');
      this.running = true;
    }
    async stop() {
      this.running = false;
    }
  }
  const vscode = {
    commands: { registerCommand: (name, run) => (seen.commands[name] = run) },
    window: { showWarningMessage: text => seen.warnings.push(text) },
    workspace: {
      isTrusted: trusted,
      getConfiguration: () => ({ get: () => ['tc-jupyter', 'lsp'] }),
      onDidChangeConfiguration: () => ({}),
      onDidGrantWorkspaceTrust: run => (seen.grant = run)
    }
  };
  const modules = { vscode, 'vscode-languageclient/node': { LanguageClient, RevealOutputChannelOn: { Never: 4 } } };
  const real = Module._load;
  Module._load = (name, ...rest) => modules[name] ?? real(name, ...rest);
  delete require.cache[require.resolve('../extension.js')];
  const extension = require('../extension.js');
  Module._load = real;
  return { extension, seen };
}

test('the server is started for files of both languages, and again when asked', async () => {
  const { extension, seen } = load();
  await extension.activate({ subscriptions: [] });
  const [client] = seen.clients;
  assert.deepEqual(client.server, { command: 'tc-jupyter', args: ['lsp'] });
  assert.deepEqual([...new Set(client.options.documentSelector.map(each => each.language))], ['tc', 'sac']);
  await seen.commands['tc-jupyter.restart']();
  assert.deepEqual(seen.clients.map(each => each.running), [false, true]);
  await extension.deactivate();
  assert.equal(seen.clients[1].running, false);
});

test('nothing is started in a workspace that nobody trusts', async () => {
  const { extension, seen } = load({ trusted: false });
  await extension.activate({ subscriptions: [] });
  assert.equal(seen.clients.length, 0);
  await seen.grant();
  assert.equal(seen.clients.length, 1);
});

test('a server that is not there is told with its cure', async () => {
  const { extension, seen } = load({ fails: true });
  await extension.activate({ subscriptions: [] });
  assert.match(seen.warnings[0], /ENOENT.*pip install "tc_jupyter\[lsp\]"/);
});
