/** Wiring: which part of the application each part of the front end is connected to. No logic of its own. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import { EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry, type CodeMirrorEditor } from '@jupyterlab/codemirror';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { INotebookTracker, NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { Widget } from '@lumino/widgets';
import type { EditorView } from '@codemirror/view';
import { languageOf } from './cells.js';
import { listenForKeys, startCompletion } from './complete.js';
import { nextDiagnostic, previousDiagnostic, quickFix } from './diagnostics.js';
import { calledElsewhere, readState, recheck } from './document.js';
import { keeping, TEXTS } from './excerpts.js';
import { definition, format, references, rename, reveal } from './edits.js';
import { tcEditor } from './editor.js';
import { support, type LanguageName } from './grammar/language.js';
import { inspectorIcon, tcIcon } from './icon.js';
import { Inspector } from './inspector.js';
import { newNotebook } from './newNotebook.js';
import { openFile } from './openFile.js';
import { rendererFactory } from './output.js';
import { SidePanel } from './panel.js';
import type { Position } from './protocol.js';
import { DEFAULTS, ITcSession, TcSession, type NotebookCell, type Settings } from './session.js';
import { PACKAGE } from './version.js';

const ID = 'tc-jupyter';
const MIMES: Readonly<Record<string, LanguageName>> = { 'text/x-tc': 'tc', 'text/x-sac': 'sac' };

export const languagesPlugin: JupyterFrontEndPlugin<void> = {
  id: `${ID}:languages`,
  description: 'Colours .tc and .sac files and fenced blocks',
  autoStart: true,
  requires: [IEditorLanguageRegistry],
  activate: (_: JupyterFrontEnd, registry: IEditorLanguageRegistry) => {
    registry.addLanguage({ name: 'Tensor Comprehensions', alias: ['tc'], mime: 'text/x-tc', extensions: ['tc'], support: support('tc') });
    registry.addLanguage({ name: 'SaC comprehensions', alias: ['sac'], mime: 'text/x-sac', extensions: ['sac'], support: support('sac') });
  }
};

export const editorPlugin: JupyterFrontEndPlugin<TcSession> = {
  id: `${ID}:editor`,
  description: 'Language features of %%tc and %%sac cells',
  autoStart: true,
  requires: [IEditorExtensionRegistry],
  optional: [INotebookTracker, ISettingRegistry],
  provides: ITcSession,
  activate: (app: JupyterFrontEnd, registry: IEditorExtensionRegistry, tracker: INotebookTracker | null, settings: ISettingRegistry | null) => {
    const session = new TcSession(tracker, { package: PACKAGE, application: `${app.name} ${app.version}` });
    listenForKeys();
    registry.addExtension({
      name: `${ID}:cells`,
      factory: options => {
        const { model } = options;
        const shared = model.sharedModel;
        // the type of a file is known only after its editor exists
        const context = { session, shared, typeChanged: model.mimeTypeChanged, get file() { return MIMES[model.mimeType] ?? null; } };
        return EditorExtensionRegistry.createImmutableExtension(tcEditor(context, shared.getSource()));
      }
    });
    void settings?.load(`${ID}:editor`).then(
      loaded => {
        const read = (): void => void (session.settings = { ...DEFAULTS, ...(loaded.composite as Partial<Settings>) });
        loaded.changed.connect(read);
        read();
      },
      () => undefined
    );
    NotebookActions.executed.connect((_, { notebook, cell }) => {
      const source = cell.model.sharedModel.getSource();
      const panel = tracker?.find(item => item.content === notebook) ?? null;
      if (panel !== null) {
        checkAgain(panel, languageOf(source) !== null || source.includes('tc_jupyter'));
      }
    });
    return session;
  }
};

/** The CodeMirror view of a cell, if it has one now. */
function viewOf(cell: Cell | null): EditorView | null {
  return (cell?.editor as CodeMirrorEditor | null | undefined)?.editor ?? null;
}

// A cell that ran may have changed what the others may call: a name of Python takes that of a def. `every`: also those that call nothing.
function checkAgain(panel: NotebookPanel, every: boolean): void {
  for (const view of panel.content.widgets.map(viewOf)) {
    const found = view === null ? null : readState(view.state);
    if (view !== null && found !== null && (every || calledElsewhere(view.state, found).length > 0)) {
      view.dispatch({ effects: recheck.of(null) });
    }
  }
}

async function goTo(panel: NotebookPanel, index: number, name: string, position: Position | null): Promise<void> {
  panel.content.activeCellIndex = index;
  await panel.content.scrollToItem(index, 'smart').catch(() => undefined);
  const cell = panel.content.widgets[index];
  await cell?.ready;
  const view = viewOf(cell ?? null);
  if (view !== null) {
    panel.content.mode = 'edit';
    reveal(view, name, position);
  }
}

export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: `${ID}:panel`,
  description: 'Side panel and notebook inspector',
  autoStart: true,
  requires: [ITcSession, INotebookTracker],
  optional: [ICommandPalette],
  activate: (app: JupyterFrontEnd, session: TcSession, tracker: INotebookTracker, palette: ICommandPalette | null) => {
    const panel = new SidePanel(session, (cell, diagnostic) => {
      const notebook = tracker.currentWidget;
      const index = notebook?.content.widgets.indexOf(cell) ?? -1;
      if (notebook && index >= 0) {
        void goTo(notebook, index, '', diagnostic.span.start);
      }
    });
    const inspector = new Inspector(session, (notebook, cell: NotebookCell, name, position) => {
      const at = session.cellsOf(notebook).find(item => item.shared === cell.shared);
      if (at) {
        void goTo(notebook, at.index, name, position);
      }
    });
    panel.title.icon = tcIcon;
    inspector.title.icon = inspectorIcon;
    app.shell.add(panel, 'right', { rank: 900, type: 'Tensor comprehensions' });
    app.shell.add(inspector, 'right', { rank: 901, type: 'Tensor comprehensions' });
    NotebookActions.executed.connect(() => inspector.schedule());
    const show = (command: string, label: string, widget: Widget): void => {
      app.commands.addCommand(`${ID}:${command}`, { label, execute: () => app.shell.activateById(widget.id) });
      palette?.addItem({ command: `${ID}:${command}`, category: 'Tensor comprehensions' });
    };
    show('show-panel', 'Show Tensor Comprehension Panel', panel);
    show('show-inspector', 'Show Defs of the Notebook', inspector);
  }
};

export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: `${ID}:commands`,
  description: 'Commands, palette entries and the launcher card',
  autoStart: true,
  requires: [ITcSession],
  optional: [INotebookTracker, ICommandPalette, ISettingRegistry, IDefaultFileBrowser],
  activate: (
    app: JupyterFrontEnd,
    session: TcSession,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
    settings: ISettingRegistry | null,
    browser: IDefaultFileBrowser | null
  ) => {
    const current = (): EditorView | null => {
      const view = viewOf(tracker?.activeCell ?? null);
      return view !== null && readState(view.state) !== null ? view : null;
    };
    const onCell = (name: string, label: string, run: (view: EditorView) => unknown): void => {
      add(name, label, () => {
        const view = current();
        return view === null ? undefined : run(view);
      }, () => current() !== null);
    };
    const add = (name: string, label: string, execute: (args: Readonly<Record<string, unknown>>) => unknown, isEnabled?: () => boolean): void => {
      app.commands.addCommand(`${ID}:${name}`, { label, execute: args => execute(args), ...(isEnabled ? { isEnabled } : {}) });
      palette?.addItem({ command: `${ID}:${name}`, category: 'Tensor comprehensions' });
    };
    onCell('rename', 'Rename Index, Tensor or Size', view => rename(view));
    onCell('format', 'Format Cell', view => format(view));
    onCell('references', 'Select All Places of the Name', view => references(view));
    onCell('complete', 'Complete', view => startCompletion(view));
    onCell('quick-fix', 'Apply Quick Fix', view => quickFix(view));
    onCell('next-problem', 'Next Problem', view => (view.focus(), nextDiagnostic(view)));
    onCell('previous-problem', 'Previous Problem', view => (view.focus(), previousDiagnostic(view)));
    onCell('definition', 'Go to Definition', async view => {
      const place = await definition(view);
      const panel = tracker?.currentWidget ?? null;
      if (place !== null && place.file !== null) {
        return openFile(app, place.file, place.position);
      }
      if (place === null || panel === null) {
        return;
      }
      const cells = session.cellsOf(panel);
      const found = cells.find(cell => cell.id === place.cell) ?? cells.filter(cell => cell.defs.includes(place.name)).at(-1);
      if (found !== undefined) {
        await goTo(panel, found.index, place.name, place.position);
      }
    });
    add('load-extension', 'Load tc_jupyter in the Kernel', () => session.linkOf(tracker?.currentWidget ?? null)?.load());
    add('toggle-inlay-hints', 'Toggle Inlay Hints (Ranges and Shapes)', () => settings?.set(`${ID}:editor`, 'inlayHints', !session.settings.inlayHints));
    app.commands.addCommand(`${ID}:new-notebook`, {
      label: args => (args.isPalette ? 'New Tensor Comprehension Notebook' : 'TC Notebook'),
      caption: 'A notebook with a first %%tc cell',
      icon: args => (args.isPalette ? undefined : tcIcon),
      execute: args => newNotebook(app, typeof args.cwd === 'string' ? args.cwd : (browser?.model.path ?? ''))
    });
    palette?.addItem({ command: `${ID}:new-notebook`, category: 'Tensor comprehensions', args: { isPalette: true } });
  }
};

export const outputPlugin: JupyterFrontEndPlugin<void> = {
  id: `${ID}:output`,
  description: 'Renderer of the saved cards; lines of messages in outputs of text',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [ITcSession],
  activate: (_: JupyterFrontEnd, registry: IRenderMimeRegistry, session: TcSession | null) => {
    // ipywidgets has rank -10: below it, the card would be a missing widget in a reopened notebook
    registry.addFactory(rendererFactory(session), -20);
    for (const mime of TEXTS) {
      const factory = registry.getFactory(mime);
      if (factory !== undefined) {
        registry.addFactory(keeping(factory, mime));
      }
    }
  }
};

export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: `${ID}:status`,
  description: 'Status bar item',
  autoStart: true,
  requires: [ITcSession, INotebookTracker],
  optional: [IStatusBar],
  activate: (app: JupyterFrontEnd, session: TcSession, tracker: INotebookTracker, bar: IStatusBar | null) => {
    if (bar === null) {
      return;
    }
    const item = new Widget({ node: document.createElement('button') });
    item.addClass('tc-statusbar');
    item.node.setAttribute('data-tc-status', '');
    item.node.onclick = () => void app.commands.execute(`${ID}:show-panel`);
    const draw = (): void => {
      const { text, title } = statusText(session, tracker);
      item.node.textContent = text;
      item.node.title = title;
    };
    for (const signal of [session.resultChanged, session.linkChanged, tracker.activeCellChanged, tracker.currentChanged]) {
      (signal as { connect(slot: () => void): unknown }).connect(draw);
    }
    draw();
    bar.registerStatusItem(`${ID}:status`, {
      item,
      align: 'right',
      rank: 60,
      isActive: () => tracker.activeCell !== null && session.result(tracker.activeCell.model.sharedModel) !== null,
      activeStateChanged: session.resultChanged as never
    });
  }
};

function statusText(session: TcSession, tracker: INotebookTracker): { text: string; title: string } {
  const link = session.linkOf(tracker.currentWidget);
  const shared = tracker.activeCell?.model.sharedModel;
  const result = shared === undefined ? null : session.result(shared);
  const errors = (result?.syntaxErrors ?? 0) + (result?.analysis?.diagnostics.filter(d => d.severity === 'error').length ?? 0);
  const warnings = result?.analysis?.diagnostics.filter(d => d.severity === 'warning').length ?? 0;
  const state = link?.state ?? 'no-kernel';
  const words: Record<string, string> = { ready: '', busy: ' (busy)', 'not-loaded': ' (not loaded)', 'no-kernel': ' (no kernel)' };
  return { text: `TC ✗ ${errors} ⚠ ${warnings}${words[state] ?? ` (${state})`}`, title: `Tensor comprehensions: ${errors} errors, ${warnings} warnings; ${state}` };
}
