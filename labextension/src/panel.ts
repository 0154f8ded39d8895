/** Side panel that follows the active cell: ranges, preconditions, iteration space, schedule, code. */
import { Widget } from '@lumino/widgets';
import type { Message } from '@lumino/messaging';
import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { h } from './dom.js';
import { describe } from './kernel.js';
import { readCode, readSchedule, type Diagnostic, type FunctionInfo } from './protocol.js';
import type { CellResult, Freshness, NotebookCell, TcSession } from './session.js';
import { defTitle, diagnosticsView, exampleSizes, preconditionsView, rangesView, shapesView, sizeControls, spaceView, table, type SpaceChoice } from './views.js';

const TABS = ['Ranges', 'Preconditions', 'Iteration space', 'Schedule', 'Code'] as const;
type Tab = (typeof TABS)[number];
const FORMS = ['loops', 'passes', 'c', 'numba', 'cuda', 'llvm', 'asm', 'ptx', 'sass', 'rewrites'];

const FRESHNESS: Readonly<Record<Freshness, string>> = {
  fresh: '',
  stale: 'from an earlier text',
  busy: 'kernel busy: from an earlier text',
  offline: 'syntax only',
  'too-large': 'too large to be checked while typing'
};

export class SidePanel extends Widget {
  private tab: Tab = 'Ranges';
  private def: string | null = null;
  private form = 'loops';
  private readonly sizes = new Map<string, Record<string, number>>();
  private readonly choices = new Map<string, SpaceChoice>();
  private readonly status = h('div', { class: 'tc-status', role: 'status' });
  private readonly tabs = h('div', { class: 'tc-tabs', role: 'tablist', 'aria-label': 'views' });
  private readonly head = h('div', {});
  private readonly content = h('div', { class: 'tc-content', role: 'tabpanel', tabindex: 0 });
  private timer: ReturnType<typeof setTimeout> | null = null;
  private drawn = 0;
  private headKey = '';
  private loadMessage: string | null = null;

  constructor(
    private readonly session: TcSession,
    private readonly go: (cell: Cell, diagnostic: Diagnostic) => void
  ) {
    super();
    this.id = 'tc-jupyter-panel';
    this.title.label = '';
    this.title.caption = 'Tensor comprehensions: ranges, schedule, code of the active cell';
    this.addClass('tc-panel');
    this.node.setAttribute('data-tc-panel', '');
    this.node.append(h('h2', { class: 'tc-heading' }, 'Tensor comprehensions'), this.status, this.tabs, this.head, this.content);
    this.drawTabs();
    session.tracker?.activeCellChanged.connect(this.schedule, this);
    session.tracker?.currentChanged.connect(this.schedule, this);
    session.resultChanged.connect((_, shared) => shared === this.cell?.model.sharedModel && this.schedule());
    session.linkChanged.connect(this.schedule, this);
  }

  /** Choose a view, as a click on its tab does. */
  choose(tab: Tab): void {
    this.tab = tab;
    this.drawTabs();
    this.draw();
  }

  schedule(): void {
    if (this.timer === null && this.isVisible) {
      this.timer = setTimeout(() => this.draw(), 40);
    }
  }

  protected override onAfterShow(_: Message): void {
    this.draw();
  }
  protected override onAfterAttach(_: Message): void {
    this.draw();
  }

  private get panel(): NotebookPanel | null {
    return this.session.tracker?.currentWidget ?? null;
  }
  private get cell(): Cell | null {
    return this.session.tracker?.activeCell ?? null;
  }

  private drawTabs(): void {
    if (this.tabs.childElementCount === 0) {
      this.tabs.append(...TABS.map((name, i) => this.tabButton(name, i)));
    }
    for (const button of Array.from(this.tabs.children)) {
      const chosen = button.getAttribute('data-tc-tab') === this.tab;
      button.setAttribute('aria-selected', String(chosen));
      button.setAttribute('tabindex', chosen ? '0' : '-1');
    }
  }

  private tabButton(name: Tab, at: number): HTMLElement {
    return h(
      'button',
      {
        type: 'button',
        role: 'tab',
        class: 'tc-tab',
        'data-tc-tab': name,
        click: () => this.choose(name),
        keydown: event => this.onTabKey(event as KeyboardEvent, at)
      },
      name
    );
  }

  private onTabKey(event: KeyboardEvent, at: number): void {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step !== 0) {
      const next = (at + step + TABS.length) % TABS.length;
      this.choose(TABS[next]);
      (this.tabs.children[next] as HTMLElement).focus();
      event.preventDefault();
    }
  }

  private draw(): void {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.timer = null;
    }
    this.drawn++;
    const cell = this.cell;
    const result = cell === null ? null : this.session.result(cell.model.sharedModel);
    this.drawStatus(result);
    if (cell === null || result === null) {
      this.headKey = '';
      this.head.replaceChildren();
      this.content.replaceChildren(h('p', { class: 'tc-empty' }, 'Select a %%tc or %%sac cell.'));
      return;
    }
    const { analysis } = result;
    const functions = analysis?.functions ?? [];
    const def = functions.find(item => item.name === this.def) ?? functions[0];
    const problems = diagnosticsView(analysis?.diagnostics ?? [], diagnostic => this.go(cell, diagnostic));
    if (def === undefined) {
      this.headKey = '';
      this.head.replaceChildren();
      const text = result.syntaxErrors > 0 ? `${result.syntaxErrors} syntax ${result.syntaxErrors === 1 ? 'error' : 'errors'} in this cell.` : 'Nothing is known of this cell yet.';
      this.content.replaceChildren(h('p', { class: 'tc-empty' }, text), ...(problems === null ? [] : [problems]));
      return;
    }
    this.drawHead(functions, def);
    this.drawContent(def, problems, result);
  }

  private drawStatus(result: CellResult | null): void {
    const link = this.session.linkOf(this.panel);
    const { text, action } = describe(link);
    const freshness = result === null ? '' : FRESHNESS[result.freshness];
    const button =
      action === 'load' && h('button', { type: 'button', class: 'jp-Button tc-load', 'data-tc-load': true, click: () => void this.load() }, 'Load');
    this.status.replaceChildren(
      h('span', {}, this.panel === null ? 'No notebook.' : text),
      ...(button === false ? [] : [' ', button]),
      ...(freshness === '' ? [] : [h('div', { class: 'tc-freshness' }, freshness)]),
      ...(this.loadMessage === null ? [] : [h('div', { class: 'tc-error' }, this.loadMessage)])
    );
    this.status.setAttribute('data-tc-state', link?.state ?? 'no-kernel');
  }

  private async load(): Promise<void> {
    this.loadMessage = null;
    this.loadMessage = (await this.session.linkOf(this.panel)?.load()) ?? null;
    this.draw();
  }

  private sizesOf(def: FunctionInfo): Record<string, number> {
    const key = `${def.name}(${def.sizes.join(',')})`;
    const known = this.sizes.get(key) ?? exampleSizes(def);
    this.sizes.set(key, known);
    return known;
  }

  // the fields keep the focus while the text of the cell changes
  private drawHead(functions: readonly FunctionInfo[], def: FunctionInfo): void {
    const key = JSON.stringify([functions.map(f => f.name), def.name, def.sizes]);
    if (key !== this.headKey) {
      this.headKey = key;
      const select = h(
        'select',
        { 'aria-label': 'def', change: () => ((this.def = select.value), this.draw()) },
        ...functions.map(f => h('option', { value: f.name, selected: f === def }, f.name))
      );
      const controls = sizeControls(def, this.sizesOf(def), sizes => {
        this.sizes.set(`${def.name}(${def.sizes.join(',')})`, sizes);
        this.draw();
      });
      this.head.replaceChildren(...(functions.length > 1 ? [select] : []), h('div', { class: 'tc-title-slot' }), controls);
    }
    this.head.querySelector('.tc-title-slot')?.replaceChildren(defTitle(def));
  }

  private drawContent(def: FunctionInfo, problems: HTMLElement | null, result: CellResult): void {
    const sizes = this.sizesOf(def);
    this.content.classList.toggle('tc-stale', result.freshness === 'stale' || result.freshness === 'busy');
    this.content.setAttribute('aria-label', this.tab);
    switch (this.tab) {
      case 'Ranges':
        this.content.replaceChildren(rangesView(def, sizes), shapesView(def, sizes), ...(problems === null ? [] : [problems]));
        return;
      case 'Preconditions':
        this.content.replaceChildren(preconditionsView(def, sizes));
        return;
      case 'Iteration space': {
        const choice = this.choices.get(def.name) ?? { statement: 0, x: null, y: null };
        this.choices.set(def.name, choice);
        this.content.replaceChildren(spaceView(def, sizes, choice, () => this.draw()));
        return;
      }
      case 'Schedule':
        void this.drawSchedule(def, sizes);
        return;
      case 'Code':
        void this.drawCode(def, sizes);
    }
  }

  private async inspect(what: string, extra: Readonly<Record<string, unknown>>): Promise<unknown> {
    const panel = this.panel;
    const link = this.session.linkOf(panel);
    const own: NotebookCell | undefined = panel === null ? undefined : this.session.cellsOf(panel).find(item => item.shared === this.cell?.model.sharedModel);
    if (link === null || !link.ready || own === undefined) {
      return 'This view needs the kernel side.';
    }
    const answer = await link.request('inspect', { cell: own.id, version: 0, magic: own.magic, source: own.body }, { what, ...extra });
    return answer.ok ? answer.reply.inspect : answer.failure.message;
  }

  private async drawSchedule(def: FunctionInfo, sizes: Record<string, number>): Promise<void> {
    const turn = this.drawn;
    const answer = await this.inspect('schedule', { name: def.name, sizes });
    if (turn !== this.drawn) {
      return;
    }
    const view = typeof answer === 'string' ? null : readSchedule(answer);
    if (view === null) {
      this.content.replaceChildren(h('p', { class: 'tc-empty' }, typeof answer === 'string' ? answer : 'The answer of the kernel could not be read.'));
      return;
    }
    const rows = view.stages.flatMap(stage => stage.loops.map(loop => [stage.stage, loop.name, loop.min, loop.extent, loop.annotation ?? '']));
    this.content.replaceChildren(
      ...(view.primitives.length > 0 ? [h('p', { class: 'tc-caption' }, 'schedule'), h('pre', { class: 'tc-code' }, view.primitives.join('\n'))] : []),
      h('p', { class: 'tc-caption' }, 'loops'),
      h('pre', { class: 'tc-code', 'data-tc-code': 'schedule' }, view.loops),
      ...(rows.length > 0 ? [table(['stage', 'loop', 'min', 'extent', ''], rows, 'the loops as a table', false)] : []),
      ...[...view.diagnostics, ...(view.note === null ? [] : [view.note])].map(text => h('p', { class: 'tc-caption' }, text))
    );
  }

  private async drawCode(def: FunctionInfo, sizes: Record<string, number>): Promise<void> {
    const turn = this.drawn;
    const answer = await this.inspect('code', { name: def.name, form: this.form, sizes });
    if (turn !== this.drawn) {
      return;
    }
    const view = typeof answer === 'string' ? null : readCode(answer);
    if (view === null) {
      this.content.replaceChildren(h('p', { class: 'tc-empty' }, typeof answer === 'string' ? answer : 'The answer of the kernel could not be read.'));
      return;
    }
    const forms = view.forms.length > 0 ? view.forms : FORMS;
    const select = h('select', { 'aria-label': 'form', change: () => ((this.form = select.value), this.draw()) }, ...forms.map(f => h('option', { value: f, selected: f === this.form }, f)));
    const copy = h('button', { type: 'button', class: 'tc-copy', click: () => void navigator.clipboard?.writeText(view.text ?? '') }, 'Copy');
    this.content.replaceChildren(
      h('div', { class: 'tc-sizes' }, select, copy),
      view.text === null ? h('p', { class: 'tc-empty' }, view.note ?? 'There is no such text.') : this.codeBlock(view.text, view.lines),
      ...(view.note === null || view.text === null ? [] : [h('p', { class: 'tc-caption' }, view.note)])
    );
  }

  // a line of generated text and the line of the cell it comes from carry the same colour and number
  private codeBlock(text: string, lines: readonly (number | null)[]): HTMLElement {
    const rows = text.split('\n').slice(0, 5000).map((line, i) => {
      const from = lines[i] ?? null;
      const origin = from === null ? '' : String(from + 1);
      return h('span', { class: from === null ? 'tc-line' : `tc-line tc-line-${from % 6}`, 'data-tc-line': origin, title: from === null ? null : `line ${origin} of the cell` }, h('span', { class: 'tc-line-number', 'aria-hidden': 'true' }, origin), line + '\n');
    });
    return h('pre', { class: 'tc-code', 'data-tc-code': this.form }, ...rows);
  }
}
