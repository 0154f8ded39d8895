// What all views share: controls from a description, numbered requests (never more than one on its way), HTML made by Python.
const STYLE = `
.tcw { font-family: var(--jp-ui-font-family, system-ui, sans-serif); ${FONT_SIZE};
  color: var(--jp-ui-font-color1, inherit); line-height: 1.45; max-width: 100%; overflow-x: auto; padding: 2px 4px; }
.tcw-controls { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: stretch; margin: 2px 0 6px; }
.tcw-group { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; max-width: 100%; box-sizing: border-box;
  border: 1px solid var(--jp-border-color2, rgba(128,128,128,.35)); border-radius: 6px; padding: 3px 8px; }
.tcw-controls label { display: inline-flex; gap: 6px; align-items: center; max-width: 100%; }
.tcw-controls label > span { white-space: nowrap; }
.tcw select { min-width: 0; text-overflow: ellipsis; } .tcw svg { max-width: none; flex: none; }
.tcw input[type=range] { width: 9.2em; min-width: 3em; accent-color: var(--jp-brand-color1, #1976d2); }
.tcw input[type=number] { width: 5.7em; min-width: 3em; }
.tcw input[type=number], .tcw input[type=text], .tcw select, .tcw button {
  font: inherit; color: var(--jp-ui-font-color1, inherit); background: var(--jp-layout-color1, Canvas);
  border: 1px solid var(--jp-border-color1, GrayText); border-radius: 3px; padding: 1px 6px; max-width: 100%; }
.tcw button { cursor: pointer; } .tcw button:disabled { opacity: .45; cursor: default; }
.tcw button[aria-pressed=true] { border-width: 2px; font-weight: bold; border-color: var(--jp-brand-color1, #1976d2); }
.tcw :focus-visible { outline: 2px solid var(--jp-focus-outline-color, var(--jp-brand-color1, #1976d2)); outline-offset: 1px; }
.tcw [aria-invalid=true] { border-color: var(--jp-error-color1, #d32f2f); border-style: dashed; }
.tcw-body { container-type: inline-size; } .tcw abbr[title] { text-decoration: underline dotted; text-underline-offset: 3px; cursor: help; }
.tcw abbr[title]:focus::after { content: " (" attr(title) ")"; font-weight: normal; white-space: normal; }
.tcw mark { background: var(--jp-warn-color3, #ffe082); color: #000; }
.tcw [data-linked] { outline: 2px solid var(--jp-brand-color1, #1976d2); }
@media (prefers-reduced-motion: no-preference) { .tcw-cursor { transition: transform .08s; } }
`;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

function svgElement(name, attributes = {}) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** One view: `enliven(root, view)` adds what the pointer and the keys do after each new content. */
function makeView(model, el, enliven) {
  const root = element('div', { class: 'tcw', 'data-lm-suppress-shortcuts': 'true' });
  const controls = element('div', { class: 'tcw-controls' });
  const said = element('div', { class: 'tcw-said', role: 'status' });
  const body = element('div', { class: 'tcw-body' });
  const head = element('div', { class: 'tcw-head' }); // of a card: stands above the controls of the view that is open
  root.append(element('style', {}, STYLE), head, controls, said, body);
  // Keys inside the view are its own, not the notebook's, which listens on the document in either phase. What the browser does with a
  // key (move a slider, press a button) does not need the event to arrive; handlers of ours stand as `ownKeys` on elements.
  const guard = event => {
    const free = event.ctrlKey || event.metaKey || event.altKey || ['Tab', 'Escape', 'Shift'].includes(event.key) || (event.shiftKey && event.key === 'Enter');
    if (free || !root.contains(event.target)) return;
    event.stopImmediatePropagation();
    for (let at = event.target; at !== null && at !== root; at = at.parentElement) at.ownKeys?.(event);
  };
  window.addEventListener('keydown', guard, true);
  el.append(root);

  let number = 0, waiting = 0, next = null, late = 0, shape = '', cleanup = null;
  const told = new Map();

  function post(values, dragging = false) {
    next = { values: { ...(next?.values ?? {}), ...values }, dragging };
    if (waiting === 0) flush();
  }
  function flush() {
    if (next === null) return;
    const message = { number: ++number, ...next };
    next = null;
    waiting = message.number;
    clearTimeout(late);
    late = setTimeout(() => { said.textContent = alive() ? '⧗ the kernel is busy: the view follows when it answers' : NO_KERNEL; }, 2000);
    try {
      if (!alive()) throw new Error('closed');
      model.send(message);
    } catch {
      waiting = 0; clearTimeout(late); said.textContent = NO_KERNEL;
    }
  }
  function ask(question) {
    return new Promise(resolve => {
      const id = ++number;
      told.set(id, resolve);
      try { model.send({ number: id, ask: question }); } catch { resolve(null); }
      setTimeout(() => { if (told.delete(id)) resolve(null); }, 5000);
    });
  }
  const NO_KERNEL = 'ℹ no kernel: this is the last state; run the cell again to change it';
  const alive = () => model.comm_live !== false;

  function drawControls(list) {
    const wanted = JSON.stringify(list.map(c => [c.name, c.kind, c.label, c.options, c.group]));
    if (wanted !== shape) {
      shape = wanted;
      const focused = document.activeElement?.getAttribute?.('data-control');
      const groups = new Map();
      for (const c of list) groups.set(c.group, [...(groups.get(c.group) ?? []), drawControl(c)]);
      controls.replaceChildren(...[...groups].map(([name, made]) => element('div', { class: 'tcw-group', role: 'group', 'aria-label': name || 'controls' }, ...made)));
      if (focused && controls.contains(document.activeElement) === false) {
        controls.querySelector(`[data-control="${CSS.escape(focused)}"]`)?.focus();
      }
    }
    for (const c of list) update(c);
  }
  function drawControl(c) {
    if (c.kind === 'button') {
      const button = element('button', { type: 'button', 'data-control': c.name }, c.label);
      button.addEventListener('click', () => post({ [c.name]: c.value ?? true }));
      return button;
    }
    if (c.kind === 'size') {
      const range = element('input', { type: 'range', min: c.low, max: c.high, step: 1, 'data-control': c.name, 'aria-label': c.label });
      const field = element('input', { type: 'number', step: 1, 'data-field': c.name, 'aria-label': `${c.label} as a number` });
      range.addEventListener('input', () => { field.value = range.value; post({ [c.name]: Number(range.value) }, true); });
      range.addEventListener('change', () => post({ [c.name]: Number(range.value) }));
      field.addEventListener('change', () => post({ [c.name]: field.value }));
      return element('label', {}, element('span', {}, `${c.label} =`), range, field);
    }
    if (c.kind === 'choice') {
      const select = element('select', { 'data-control': c.name, 'aria-label': c.label });
      select.append(...c.options.map(([value, label]) => element('option', { value: JSON.stringify(value) }, label)));
      select.addEventListener('change', () => post({ [c.name]: JSON.parse(select.value) }));
      return element('label', {}, element('span', {}, c.label), select);
    }
    if (c.kind === 'check') {
      const box = element('input', { type: 'checkbox', 'data-control': c.name });
      box.addEventListener('change', () => post({ [c.name]: box.checked }));
      return element('label', {}, box, element('span', {}, c.label));
    }
    const field = element('input', { type: 'text', 'data-control': c.name, 'aria-label': c.label });
    field.addEventListener('change', () => post({ [c.name]: field.value }));
    return element('label', {}, element('span', {}, c.label), field);
  }
  function update(c) {
    const made = controls.querySelector(`[data-control="${CSS.escape(c.name)}"]`);
    if (made === null) return;
    made.toggleAttribute('disabled', Boolean(c.disabled));
    const busy = waiting !== 0 || next !== null;
    if (c.kind === 'size') {
      const field = controls.querySelector(`[data-field="${CSS.escape(c.name)}"]`);
      made.min = c.low;
      if (document.activeElement !== made) made.max = c.high;
      if (!busy) { made.value = c.value; if (document.activeElement !== field) field.value = c.value; } // not while it is typed into
    } else if (c.kind === 'choice') made.value = JSON.stringify(c.value);
    else if (c.kind === 'check') made.checked = Boolean(c.value);
    else if (c.kind === 'text' && document.activeElement !== made) made.value = c.value ?? '';
  }

  function draw() {
    const state = model.get('state') ?? {};
    if ((state.answer ?? 0) >= waiting) { waiting = 0; clearTimeout(late); }
    said.textContent = state.failed ? `✗ ${state.failed}` : '';
    drawControls(state.controls ?? []);
    if (!state.failed) {
      const key = body.contains(document.activeElement) ? document.activeElement.getAttribute('data-key') ?? (document.activeElement.hasAttribute('data-lattice') ? 'lattice' : null) : null;
      const open = new Map([...body.querySelectorAll('details[data-fold]')].map(d => [d.dataset.fold, d.open]));
      cleanup?.();
      body.innerHTML = state.html ?? '';
      for (const d of body.querySelectorAll('details[data-fold]')) if (open.has(d.dataset.fold)) d.open = open.get(d.dataset.fold);
      for (const button of body.querySelectorAll('[data-action]')) {
        button.addEventListener('click', () => post(JSON.parse(button.dataset.action)));
      }
      cleanup = enliven(body, view) ?? null;
      if (key === 'lattice') body.querySelector('[data-lattice]')?.focus({ preventScroll: true });
      else if (key !== null) body.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
    }
    drawHead(state.data?.head ?? '');
    root.dataset.answer = state.answer ?? 0;
    if (waiting === 0) flush();
  }
  let shownHead = '';
  function drawHead(text) {
    if (text === shownHead) return;
    shownHead = text;
    const key = head.contains(document.activeElement) ? document.activeElement.getAttribute('data-key') : null;
    head.innerHTML = text;
    for (const button of head.querySelectorAll('[data-action]')) button.addEventListener('click', () => post(JSON.parse(button.dataset.action)));
    if (key !== null) head.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  }
  function hear(message) {
    const resolve = told.get(message?.number);
    if (resolve !== undefined) { told.delete(message.number); resolve(message.told ?? null); }
  }
  const view = {
    root, body, post, ask,
    say: text => { said.textContent = text; },
    get data() { return model.get('state')?.data ?? {}; },
    get points() { const p = model.get('points'); return p instanceof DataView ? p : new DataView(p?.buffer ?? new ArrayBuffer(0)); },
  };
  model.on('change:state', draw);
  model.on('msg:custom', hear);
  draw();
  return () => { window.removeEventListener('keydown', guard, true); model.off('change:state', draw); model.off('msg:custom', hear); clearTimeout(late); cleanup?.(); };
}

async function copyText(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
  const area = element('textarea', { style: 'position:fixed;opacity:0' });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}
