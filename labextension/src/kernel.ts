/**
 * The comm to the kernel: the only file that talks to one. PROTOCOL.md is the contract.
 *
 * The kernel opens the comm. A `KernelLink` belongs to one notebook: it finds the comm after every connection, sends requests,
 * matches replies, and knows how to say what is wrong (`state`). `request` never rejects.
 */
import { Signal, type ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { fields, readFailure, readKeywords, TARGET, VERSION, type Failure, type Keywords, type Kind } from './protocol.js';
import type { LanguageName } from './grammar/language.js';

/** After this many milliseconds without an answer the kernel is called busy. */
export const BUSY_AFTER = 2000;

export type LinkState = 'no-kernel' | 'connecting' | 'other-language' | 'not-loaded' | 'wrong-version' | 'ready' | 'busy';

export interface Subject {
  readonly cell: string;
  readonly version: number;
  readonly magic: string;
  readonly source: string;
  readonly earlier?: readonly { readonly cell: string; readonly magic: string; readonly source: string }[];
}

export type Answer = { readonly ok: true; readonly reply: Readonly<Record<string, unknown>> } | { readonly ok: false; readonly failure: Failure };

type Extra = Readonly<Record<string, unknown>>;
/** Since JupyterLab 4.4 a comm has a subshell. */
type Comm = Kernel.IComm & { readonly subshellStarted?: Promise<void>; readonly subshellId?: string | null; readonly commsOverSubshells?: string };
type Message = Readonly<Record<string, unknown>> & { readonly id: string; readonly kind: Kind };
interface Waiting {
  readonly message: Message;
  readonly settle: (answer: Answer) => void;
  readonly timer: ReturnType<typeof setTimeout>;
  late: boolean;
}

const PAGE = Math.random().toString(36).slice(2, 10);
const GONE: Answer = { ok: false, failure: { code: 'gone', message: 'the kernel is not connected', help: null } };
let counter = 0;

export class KernelLink implements IDisposable {
  private static readonly all = new Set<KernelLink>();
  private readonly waiting = new Map<string, Waiting>();
  private readonly words = new Map<LanguageName, Keywords>();
  private comm: Kernel.IComm | null = null;
  private kernel: Kernel.IKernelConnection | null = null;
  private base: Exclude<LinkState, 'busy'> = 'no-kernel';
  private versionNote: string | null = null;
  private attempt = 0;
  isDisposed = false;
  private readonly _changed = new Signal<this, void>(this);

  constructor(
    session: ISessionContext,
    private readonly client: { readonly package: string; readonly application: string }
  ) {
    KernelLink.all.add(this);
    session.kernelChanged.connect(this.onKernelChanged, this);
    session.statusChanged.connect(this.onStatus, this);
    session.connectionStatusChanged.connect(this.onConnection, this);
    void this.attach(session.session?.kernel ?? null);
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.isDisposed = true;
    KernelLink.all.delete(this);
    this.detach('no-kernel');
    Signal.clearData(this);
  }

  /** Emitted when `state`, `package` or the vocabulary changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get state(): LinkState {
    const link = this.source();
    if (link !== this) {
      return link.state;
    }
    return this.base === 'ready' && this.isLate ? 'busy' : this.base;
  }

  /** Version of the Python package, once it has answered. */
  get package(): string | null {
    const words = [...this.source().words.values()];
    return words.length > 0 ? words[0].package || null : this.source().opened;
  }
  private opened: string | null = null;

  /** What to tell the user about versions, or `null`. */
  get note(): string | null {
    const link = this.source();
    if (link.versionNote !== null) {
      return link.versionNote;
    }
    const theirs = link.package;
    return theirs === null || theirs === this.client.package
      ? null
      : `the kernel has tc_jupyter ${theirs}, this page has ${this.client.package}; they work together, but update both to the same version`;
  }

  get ready(): boolean {
    const state = this.state;
    return state === 'ready' || state === 'busy';
  }

  keywords(language: LanguageName): Keywords | null {
    return this.source().words.get(language) ?? null;
  }

  /** Send a request; the answer comes whenever the kernel gives it, and says `ok: false` if there will be none. */
  request(kind: Kind, subject: Subject, extra: Extra = {}): Promise<Answer> {
    const link = this.source();
    if (link !== this) {
      return link.request(kind, subject, extra);
    }
    const comm = this.comm;
    if (comm === null || comm.isDisposed || this.base !== 'ready') {
      return Promise.resolve(GONE);
    }
    const id = `${PAGE}-${++counter}`;
    const message = { v: VERSION, kind, id, ...subject, ...extra };
    return new Promise(resolve => {
      const timer = setTimeout(() => this.onLate(id), BUSY_AFTER);
      this.waiting.set(id, { message, settle: resolve, timer, late: false });
      this.send(comm, message);
    });
  }

  private send(comm: Kernel.IComm, message: Message): void {
    try {
      comm.send(message as never).done.catch(() => this.settle(message.id, GONE));
    } catch {
      this.settle(message.id, GONE);
    }
  }

  /** Run `%load_ext tc_jupyter`, because the user pressed the button. Returns what went wrong, or `null`. */
  async load(): Promise<string | null> {
    if (this.kernel === null) {
      return 'the notebook has no kernel';
    }
    try {
      const reply = await this.kernel.requestExecute({ code: '%load_ext tc_jupyter', store_history: false }).done;
      if (reply.content.status === 'ok') {
        return null;
      }
      const content = reply.content as KernelMessage.IReplyErrorContent;
      return content.ename === 'ModuleNotFoundError'
        ? 'the environment of the kernel has no `tc_jupyter`: install it there (`%pip install tc_jupyter`) and try again'
        : `${content.ename}: ${content.evalue}`;
    } catch {
      return 'the kernel did not answer';
    }
  }

  // a second notebook on the same kernel has a connection without comms: it speaks through the first one
  private source(): KernelLink {
    const kernel = this.kernel;
    if (kernel === null || kernel.handleComms) {
      return this;
    }
    for (const link of KernelLink.all) {
      if (link !== this && link.kernel?.id === kernel.id && link.kernel.handleComms) {
        return link;
      }
    }
    return this;
  }

  private get isLate(): boolean {
    return [...this.waiting.values()].some(entry => entry.late);
  }

  private onKernelChanged(_: ISessionContext, change: { newValue: Kernel.IKernelConnection | null }): void {
    void this.attach(change.newValue);
  }

  private onStatus(_: ISessionContext, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead' || status === 'terminating') {
      this.detach(status === 'dead' ? 'no-kernel' : 'connecting');
    } else if (this.base === 'connecting' && this.kernel !== null && this.comm === null) {
      // a restart forgets the targets, and a kernel may open the comm while it starts
      this.listen(this.kernel);
      if (status === 'idle') {
        void this.attach(this.kernel);
      }
    }
  }

  private listen(kernel: Kernel.IKernelConnection): void {
    if (!kernel.handleComms || kernel.isDisposed) {
      return;
    }
    kernel.registerCommTarget(TARGET, (comm, message) => {
      if (this.kernel === kernel && !this.isDisposed) {
        this.adopt(comm, message.content.data);
      }
    });
  }

  private onConnection(_: ISessionContext, status: Kernel.ConnectionStatus): void {
    if (status === 'connected' && this.comm === null && this.kernel !== null) {
      void this.attach(this.kernel);
    }
  }

  private async attach(kernel: Kernel.IKernelConnection | null): Promise<void> {
    const attempt = ++this.attempt;
    this.detach(kernel === null ? 'no-kernel' : 'connecting');
    this.kernel = kernel;
    if (kernel === null) {
      return;
    }
    const current = (): boolean => attempt === this.attempt && !this.isDisposed && !kernel.isDisposed;
    try {
      this.listen(kernel);
      const info = await kernel.info;
      if (!current()) {
        return;
      }
      if (info.language_info?.name !== 'python') {
        this.set('other-language');
        return;
      }
      if (!kernel.handleComms) {
        this.set(this.source() === this ? 'not-loaded' : 'ready');
        return;
      }
      const reply = await kernel.requestCommInfo({ target_name: TARGET });
      if (!current() || this.comm !== null) {
        return;
      }
      const known = reply.content.status === 'ok' ? Object.keys(reply.content.comms) : [];
      const id = known.at(-1);
      if (id === undefined || kernel.hasComm(id)) {
        this.set('not-loaded');
        return;
      }
      this.adopt(kernel.createComm(TARGET, id), null);
    } catch {
      if (current() && this.comm === null) {
        this.set('not-loaded');
      }
    }
  }

  private adopt(comm: Kernel.IComm, data: unknown): void {
    this.release();
    this.comm = comm;
    comm.onMsg = message => {
      if (this.comm === comm) {
        this.receive(message.content.data);
      }
    };
    comm.onClose = () => {
      if (this.comm === comm) {
        this.comm = null;
        this.detach('not-loaded');
      }
    };
    const opened = fields(data);
    this.opened = typeof opened?.package === 'string' ? opened.package : null;
    if (opened !== null && opened.v !== VERSION) {
      this.refuse(opened.v);
      return;
    }
    void this.begin(comm);
  }

  // before the kernel has made the subshell, a question would wait in the queue of the cells, and block all that follow; the kernel
  // makes it beside a running cell, however long that takes
  private async begin(comm: Comm): Promise<void> {
    this.set('connecting');
    await this.kernel?.info.catch(() => undefined);
    if (this.kernel?.supportsSubshells && comm.commsOverSubshells !== 'disabled') {
      await comm.subshellStarted?.catch(() => undefined);
    }
    if (this.comm === comm && !this.isDisposed) {
      this.set('ready');
      void this.learn('tc');
      void this.learn('sac');
    }
  }

  private async learn(language: LanguageName): Promise<void> {
    const subject = { cell: '', version: 0, magic: `%%${language}`, source: '' };
    const answer = await this.request('keywords', subject, { client: this.client });
    const words = answer.ok ? readKeywords(answer.reply.keywords) : null;
    if (words !== null) {
      this.words.set(language, words);
      this._changed.emit();
    }
  }

  private refuse(version: unknown): void {
    const older = typeof version === 'number' && version < VERSION;
    this.versionNote =
      `the kernel speaks version ${String(version)} of the protocol, this page version ${VERSION}: update tc_jupyter where ` +
      (older ? 'the kernel runs' : 'JupyterLab runs') +
      ' and reload';
    this.set('wrong-version');
    this.settleAll();
  }

  private receive(data: unknown): void {
    const reply = fields(data);
    if (reply === null || typeof reply.id !== 'string' || !this.waiting.has(reply.id)) {
      return;
    }
    if (reply.v !== VERSION) {
      this.refuse(reply.v);
      return;
    }
    const { kind } = this.waiting.get(reply.id)!.message;
    if (reply.kind === kind) {
      this.settle(reply.id, { ok: true, reply });
    } else {
      const failure = reply.kind === 'error' ? readFailure(reply.error) : { code: 'malformed', message: 'the answer of the kernel could not be read', help: null };
      this.settle(reply.id, { ok: false, failure });
    }
  }

  private onLate(id: string): void {
    const entry = this.waiting.get(id);
    if (entry !== undefined) {
      entry.late = true;
      // no cell stands before the question, so it or its answer was lost: a connection that is made anew loses messages
      if (this.comm !== null && (this.kernel?.status === 'idle' || (this.comm as Comm).subshellId)) {
        this.send(this.comm, entry.message);
      }
      this._changed.emit();
    }
  }

  private settle(id: string, answer: Answer): void {
    const entry = this.waiting.get(id);
    if (entry === undefined) {
      return;
    }
    this.waiting.delete(id);
    clearTimeout(entry.timer);
    entry.settle(answer);
    if (entry.late && !this.isLate) {
      this._changed.emit();
    }
  }

  private settleAll(): void {
    for (const id of [...this.waiting.keys()]) {
      this.settle(id, GONE);
    }
  }

  private detach(state: Exclude<LinkState, 'busy'>): void {
    this.release();
    this.words.clear();
    this.opened = null;
    this.versionNote = null;
    this.set(state);
  }

  private release(): void {
    const comm = this.comm;
    this.comm = null;
    if (comm !== null) {
      // the comm belongs to the kernel and to other pages: forget it, do not close it
      comm.onMsg = () => undefined;
      comm.onClose = () => undefined;
    }
    this.settleAll();
  }

  private set(state: Exclude<LinkState, 'busy'>): void {
    if (this.base !== state) {
      this.base = state;
      if (!this.isDisposed) {
        this._changed.emit();
      }
    }
  }
}

/** One sentence for the user about the connection, with what to do. */
export function describe(link: KernelLink | null): { text: string; action: 'load' | null } {
  switch (link?.state ?? 'no-kernel') {
    case 'no-kernel':
      return { text: 'No kernel: syntax only. Start a kernel for ranges and shapes.', action: null };
    case 'connecting':
      return { text: 'Connecting to the kernel.', action: null };
    case 'other-language':
      return { text: 'This kernel is not a Python kernel: %%tc and %%sac cells are checked for syntax only.', action: null };
    case 'not-loaded':
      return { text: 'Kernel side not loaded: run %load_ext tc_jupyter', action: 'load' };
    case 'wrong-version':
      return { text: `Not connected: ${link?.note ?? 'the versions differ'}.`, action: null };
    case 'busy':
      return { text: 'Kernel busy: what you see is from before.', action: null };
    case 'ready':
      return { text: link?.note ?? 'Connected', action: null };
  }
}
