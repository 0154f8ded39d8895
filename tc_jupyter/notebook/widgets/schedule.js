// Schedule: copy as Python; play through the visits (step by step only where motion is not wanted).
function enliven(body, view) {
  const data = view.data;
  body.querySelector('[data-copy=python]')?.addEventListener('click', async () => {
    view.say((await copyText(data.python)) ? '✓ copied' : '✗ the browser does not allow copying here');
  });
  const button = body.querySelector('[data-play]');
  if (button !== null && view.playing && data.visit + 1 < data.visits) {
    const timer = setTimeout(() => view.post({ visit: data.visit + 1 }), 250);
    return () => clearTimeout(timer);
  }
  if (data.visit + 1 >= (data.visits ?? 0)) view.playing = false;
  button?.addEventListener('click', () => { view.playing = !matchMedia('(prefers-reduced-motion: reduce)').matches; });
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
