// Code: a line and its partners on the other side are outlined together; copy the generated text.
function enliven(body, view) {
  const lines = [...body.querySelectorAll('[data-line]')];
  function link(number, from) {
    for (const line of lines) line.toggleAttribute('data-linked', line.dataset.line === number);
    if (number === null) return;
    const side = from.closest('[data-listing]');
    const other = lines.find(line => line.dataset.line === number && line.closest('[data-listing]') !== side);
    const box = other?.closest('[data-listing]');
    if (box && (other.offsetTop < box.scrollTop || other.offsetTop > box.scrollTop + box.clientHeight)) box.scrollTop = other.offsetTop - box.offsetTop;
  }
  for (const line of lines) {
    line.addEventListener('pointerenter', () => link(line.dataset.line, line));
    line.addEventListener('pointerleave', () => link(null, line));
    line.addEventListener('focus', () => link(line.dataset.line, line));
    line.ownKeys = event => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      lines[lines.indexOf(line) + step]?.focus();
    };
  }
  body.querySelector('[data-copy=made]')?.addEventListener('click', async () => {
    view.say((await copyText(view.data.text ?? '')) ? '✓ copied' : '✗ the browser does not allow copying here');
  });
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
