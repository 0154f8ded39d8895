/** Starts `tc-jupyter lsp` for `.tc` and `.sac` files; everything that is said about a text comes from there. */
'use strict';
const { commands, window, workspace } = require('vscode');
const { LanguageClient, RevealOutputChannelOn } = require('vscode-languageclient/node');

const LANGUAGES = ['tc', 'sac'];
let client;

async function start() {
  const [command, ...args] = workspace.getConfiguration('tc-jupyter').get('command') ?? ['tc-jupyter', 'lsp'];
  const documents = LANGUAGES.flatMap(language => ['file', 'untitled'].map(scheme => ({ scheme, language })));
  const options = { documentSelector: documents, revealOutputChannelOn: RevealOutputChannelOn.Never };
  client = new LanguageClient('tc-jupyter', 'Tensor comprehensions', { command, args }, options);
  try {
    await client.start();
  } catch (problem) {
    client = undefined;
    const help = 'Install it with pip install "tc_jupyter[lsp]", or name the command in the setting tc-jupyter.command.';
    window.showWarningMessage(`The language server \`${[command, ...args].join(' ')}\` did not start (${problem.message ?? problem}). ${help}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function activate(context) {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(
    commands.registerCommand('tc-jupyter.restart', restart),
    workspace.onDidChangeConfiguration(changed => changed.affectsConfiguration('tc-jupyter.command') && restart())
  );
  // a command of a folder that nobody trusts is not run; colours need none
  if (workspace.isTrusted) {
    await start();
  } else {
    context.subscriptions.push(workspace.onDidGrantWorkspaceTrust(start));
  }
}

module.exports = { activate, deactivate: stop };
