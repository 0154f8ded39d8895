/**
 * What the plugins share: the settings, one `KernelLink` per notebook, and the last answer for each cell.
 *
 * Plugins read and listen here; none of them knows another.
 */
import { Token } from '@lumino/coreutils';
import { Signal, type ISignal } from '@lumino/signaling';
import type { ISharedText } from '@jupyter/ydoc';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { splitSource } from './cells.js';
import { languages, type LanguageName } from './grammar/language.js';
import { KernelLink } from './kernel.js';
import type { Analysis } from './protocol.js';

export interface Settings {
  readonly highlighting: boolean;
  readonly diagnostics: boolean;
  readonly gutter: boolean;
  readonly hover: boolean;
  readonly completion: boolean;
  readonly signatureHelp: boolean;
  readonly inlayHints: boolean;
  readonly delay: number;
}

export const DEFAULTS: Settings = {
  highlighting: true,
  diagnostics: true,
  gutter: true,
  hover: true,
  completion: true,
  signatureHelp: true,
  inlayHints: false,
  delay: 300
};

const KEYS = Object.keys(DEFAULTS) as readonly (keyof Settings)[];

/** How the last answer relates to the text on the screen. */
export type Freshness = 'fresh' | 'stale' | 'busy' | 'offline' | 'too-large';

export interface CellResult {
  readonly analysis: Analysis | null;
  readonly freshness: Freshness;
  readonly syntaxErrors: number;
  /** the text of the body that was analysed */
  readonly source: string;
  readonly language: LanguageName;
}

/** A `%%tc` or `%%sac` cell of a notebook as the shared model has it, executed or not. */
export interface NotebookCell {
  readonly index: number;
  readonly id: string;
  readonly language: LanguageName;
  readonly magic: string;
  readonly body: string;
  readonly firstLine: number;
  /** names of its defs */
  readonly defs: readonly string[];
  readonly shared: ISharedText;
}

export class TcSession {
  private readonly links = new Map<NotebookPanel, KernelLink>();
  private readonly results = new WeakMap<ISharedText, CellResult>();
  private readonly outlines = new WeakMap<ISharedText, { source: string; defs: string[] }>();
  private readonly _settingsChanged = new Signal<this, Settings>(this);
  private readonly _linkChanged = new Signal<this, NotebookPanel>(this);
  private readonly _resultChanged = new Signal<this, ISharedText>(this);
  private _settings: Settings = DEFAULTS;

  constructor(
    readonly tracker: INotebookTracker | null,
    private readonly client: { readonly package: string; readonly application: string }
  ) {
    tracker?.forEach(panel => this.follow(panel));
    tracker?.widgetAdded.connect((_, panel) => this.follow(panel));
  }

  get settings(): Settings {
    return this._settings;
  }
  set settings(settings: Settings) {
    const before = this._settings;
    this._settings = settings;
    // settings that say what holds already come with every start; to make the editors anew would close an open list
    if (KEYS.some(key => before[key] !== settings[key])) {
      this._settingsChanged.emit(settings);
    }
  }
  get settingsChanged(): ISignal<this, Settings> {
    return this._settingsChanged;
  }
  get linkChanged(): ISignal<this, NotebookPanel> {
    return this._linkChanged;
  }
  get resultChanged(): ISignal<this, ISharedText> {
    return this._resultChanged;
  }

  linkOf(panel: NotebookPanel | null): KernelLink | null {
    return panel === null ? null : (this.links.get(panel) ?? null);
  }

  /** The notebook that shows a cell, or `null` for a file. */
  panelOf(shared: ISharedText): NotebookPanel | null {
    const notebook = (shared as { notebook?: unknown }).notebook;
    if (this.tracker === null || notebook === null || notebook === undefined) {
      return null;
    }
    return this.tracker.find(panel => panel.content.model?.sharedModel === notebook) ?? null;
  }

  result(shared: ISharedText): CellResult | null {
    return this.results.get(shared) ?? null;
  }

  setResult(shared: ISharedText, result: CellResult | null): void {
    if (result === null) {
      this.results.delete(shared);
    } else {
      this.results.set(shared, result);
    }
    this._resultChanged.emit(shared);
  }

  /** All cells of our languages, in notebook order. */
  cellsOf(panel: NotebookPanel): NotebookCell[] {
    const cells = panel.content.model?.sharedModel.cells ?? [];
    return cells.flatMap((shared, index) => {
      const parts = shared.cell_type === 'code' ? splitSource(shared.source) : null;
      if (parts === null) {
        return [];
      }
      return [{ ...parts, index, id: shared.id, defs: this.defs(shared, parts.language, parts.body), shared }];
    });
  }

  private defs(shared: ISharedText, language: LanguageName, source: string): string[] {
    const known = this.outlines.get(shared);
    if (known !== undefined && known.source === source) {
      return known.defs;
    }
    const defs: string[] = [];
    if (source.length <= 200_000) {
      languages[language].parser.parse(source).iterate({
        enter: node => {
          if (node.name === 'DefName') {
            defs.push(source.slice(node.from, node.to));
          }
          return node.name === 'Cell' || node.name === 'Definition';
        }
      });
    }
    this.outlines.set(shared, { source, defs });
    return defs;
  }

  private follow(panel: NotebookPanel): void {
    const link = new KernelLink(panel.sessionContext, this.client);
    this.links.set(panel, link);
    link.changed.connect(() => this._linkChanged.emit(panel));
    panel.disposed.connect(() => {
      link.dispose();
      this.links.delete(panel);
    });
  }
}

export const ITcSession = new Token<TcSession>('tc-jupyter:ITcSession', 'State of the tc_jupyter front end');
