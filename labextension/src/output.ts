/**
 * Renderer of `application/vnd.tc-jupyter.v1+json`: the card of a cell, alive in a notebook without a kernel.
 *
 * If the same bundle names a widget whose model lives in the notebook's kernel, that widget is mounted; else, and again when the kernel
 * restarts, the static content is drawn. Nothing in the data is executed.
 */
import { Panel, Widget } from '@lumino/widgets';
import type { PartialJSONObject } from '@lumino/coreutils';
import type { Message } from '@lumino/messaging';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { h } from './dom.js';
import { beginning, OMITTED } from './legible.js';
import { fields, MIME, readAnalysis, type FunctionInfo } from './protocol.js';
import { sanitized } from './sanitize.js';
import type { TcSession } from './session.js';
import { defTitle, diagnosticsView, exampleSizes, preconditionsView, rangesView, shapesView, sizeControls, spaceView, type SpaceChoice } from './views.js';

const MOST_SAVED = 100_000;
const WIDGET_MIME = 'application/vnd.jupyter.widget-view+json';

/** What is used of ipywidgets' manager. */
interface Manager {
  has_model(id: string): boolean;
  get_model(id: string): Promise<LiveModel>;
  readonly restored?: { connect(slot: () => void, context?: unknown): void; disconnect(slot: () => void, context?: unknown): void };
}

/** What is used of a widget's model: `saved` is the static form of its present state. */
interface LiveModel {
  get(name: string): unknown;
  on(event: string, slot: () => void): void;
  off(event: string, slot: () => void): void;
}

export class CardRenderer extends Panel implements IRenderMime.IRenderer {
  private readonly fixed = new Widget();
  private live: (Widget & IRenderMime.IRenderer) | null = null;
  private model: IRenderMime.IMimeModel | null = null;
  private panel: NotebookPanel | null = null;
  private manager: Manager | null = null;
  private source: LiveModel | null = null;

  constructor(private readonly session: TcSession | null) {
    super();
    this.addClass('tc-card');
    this.node.setAttribute('data-tc-card', '');
    this.addWidget(this.fixed);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.model = model;
    this.drawStatic();
    this.mount();
  }

  override dispose(): void {
    this.source?.off('change:saved', this.keep);
    this.manager?.restored?.disconnect(this.mount, this);
    this.panel?.sessionContext.statusChanged.disconnect(this.onStatus, this);
    super.dispose();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    void this.findManager();
  }

  private drawStatic(): void {
    const data = fields(this.model?.data[MIME]);
    const node = this.fixed.node;
    node.replaceChildren();
    node.setAttribute('data-tc-card-content', 'static');
    if (data === null) {
      node.append(h('p', { class: 'tc-empty' }, 'this output of tc_jupyter cannot be read'));
      return;
    }
    if (typeof data.title === 'string') {
      node.append(h('div', { class: 'tc-title' }, h('b', {}, data.title)));
    }
    if (typeof data.html === 'string' && data.html !== '') {
      node.append(h('div', { class: 'tc-html' }, sanitized(data.html)));
      return;
    }
    const begun = beginning(data);
    const analysis = readAnalysis(begun.data);
    const examples = fields(fields(begun.data)?.examples);
    const text = typeof data.text === 'string' ? data.text : null;
    if (analysis === null || (text !== null && analysis.functions.length === 0)) {
      node.append(text === null ? h('p', { class: 'tc-empty' }, 'this output of tc_jupyter cannot be read') : h('pre', {}, text));
      return;
    }
    const problems = diagnosticsView(analysis.diagnostics);
    node.append(...(problems === null ? [] : [problems]), ...analysis.functions.map(def => defCard(def, fields(examples?.[def.name]))));
    if (!begun.whole) {
      node.append(h('p', { class: 'tc-empty' }, OMITTED));
    }
  }

  // the manager of the widgets belongs to the notebook; it is reached through the notebook's own renderer for widgets
  private async findManager(): Promise<void> {
    const tracker = this.session?.tracker ?? null;
    const id = this.modelId;
    if (tracker === null || id === null || this.panel !== null) {
      this.mount();
      return;
    }
    const panel = tracker.find(item => item.node.contains(this.node)) ?? null;
    if (panel === null || panel.content.rendermime.preferredMimeType({ [WIDGET_MIME]: {} }, 'any') !== WIDGET_MIME) {
      return;
    }
    this.panel = panel;
    panel.sessionContext.statusChanged.connect(this.onStatus, this);
    this.manager = await managerOf(panel);
    if (!this.isDisposed) {
      this.manager?.restored?.connect(this.mount, this);
      this.mount();
    }
  }

  private get modelId(): string | null {
    const view = fields(this.model?.data[WIDGET_MIME]);
    return typeof view?.model_id === 'string' && view.model_id !== '' ? view.model_id : null;
  }

  private mount(): void {
    const id = this.modelId;
    // the models of widgets are read from any notebook; what is not trusted may say nothing but a card
    if (id === null || this.panel === null || this.model === null || !this.model.trusted) {
      return;
    }
    if (this.live !== null || !(this.manager?.has_model(id) ?? false)) {
      return;
    }
    const renderer = this.panel.content.rendermime.createRenderer(WIDGET_MIME);
    this.live = renderer;
    this.addWidget(renderer);
    renderer.node.setAttribute('data-tc-card-content', 'live');
    renderer
      .renderModel(this.model)
      .then(() => this.fixed.hide())
      .catch(() => this.unmount());
    void this.manager?.get_model(id).then(source => {
      if (!this.isDisposed) {
        this.source = source;
        source.on('change:saved', this.keep);
        this.keep();
      }
    });
  }

  // the notebook's output follows the live view: what is saved, reopened or exported is what was last seen
  private readonly keep = (): void => {
    const saved = fields(this.source?.get('saved'));
    if (saved === null || this.model === null || saved[MIME] === undefined || this.isDisposed) {
      return;
    }
    // a card keeps the analysis that its output has besides the picture
    const data = { ...fields(this.model.data[MIME]), ...fields(saved[MIME]) } as PartialJSONObject;
    const wanted = { ...this.model.data, ...(saved as PartialJSONObject), [MIME]: data };
    if (JSON.stringify(data).length <= MOST_SAVED && JSON.stringify(wanted) !== JSON.stringify(this.model.data)) {
      this.model.setData({ data: wanted });
    }
  };

  private unmount(): void {
    this.source?.off('change:saved', this.keep);
    this.source = null;
    this.live?.dispose();
    this.live = null;
    this.fixed.show();
  }

  private onStatus(_: unknown, status: string): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this.unmount();
    }
  }
}

async function managerOf(panel: NotebookPanel): Promise<Manager | null> {
  const probe = panel.content.rendermime.createRenderer(WIDGET_MIME);
  const held = (probe as unknown as { _manager?: { promise?: Promise<unknown> } })._manager?.promise;
  const manager = held === undefined ? null : await Promise.race([held, new Promise<null>(resolve => setTimeout(() => resolve(null), 20_000))]);
  probe.dispose();
  const candidate = fields(manager);
  return candidate !== null && typeof candidate.has_model === 'function' ? (manager as Manager) : null;
}

/** One def of a saved card: everything that its JSON says, with sizes that can be changed. */
export function defCard(def: FunctionInfo, example: Readonly<Record<string, unknown>> | null): HTMLElement {
  const given = Object.entries(example ?? {}).flatMap(([name, size]) => (typeof size === 'number' ? [[name, size] as const] : []));
  let sizes: Record<string, number> = { ...exampleSizes(def), ...Object.fromEntries(given) };
  const choice: SpaceChoice = { statement: 0, x: null, y: null };
  const content = h('div', {});
  const space = h('details', { class: 'tc-details' }, h('summary', {}, 'Iteration space'));
  const draw = (): void => {
    content.replaceChildren(rangesView(def, sizes), shapesView(def, sizes), preconditionsView(def, sizes));
    space.replaceChildren(space.firstChild!, ...(space.open ? [spaceView(def, sizes, choice, draw)] : []));
  };
  space.addEventListener('toggle', draw);
  draw();
  const controls = sizeControls(def, sizes, next => {
    sizes = next;
    draw();
  });
  return h('section', { class: 'tc-def', 'data-tc-def': def.name }, defTitle(def), controls, content, space);
}

export function rendererFactory(session: TcSession | null): IRenderMime.IRendererFactory {
  return { safe: true, mimeTypes: [MIME], defaultRank: -20, createRenderer: () => new CardRenderer(session) };
}
