// Schedule: copy as Python; play through the visits (step by step only where motion is not wanted).
function enliven(body, view) {
  const data = view.data;
  body.querySelector('[data-copy=python]')?.addEventListener('click', async () => {
    view.say((await copyText(data.python)) ? '✓ copied' : '✗ the browser does not allow copying here');
  });
  // one thing at a time plays: the visits of a stage, or the steps of its order
  const played = { visit: [data.visit, data.visits], time: [data.time, data.times] };
  for (const button of body.querySelectorAll('[data-play]')) {
    button.addEventListener('click', () => {
      const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
      view.playing = still ? null : button.dataset.play;
      if (button.dataset.play === 'time') view.post({ time: still ? (data.time + 1) % data.times : 0 });
    });
  }
  const [at, count] = played[view.playing] ?? [0, 0];
  if (view.playing && at + 1 < (count ?? 0)) {
    const timer = setTimeout(() => view.post({ [view.playing]: at + 1 }), 250);
    return () => clearTimeout(timer);
  }
  view.playing = null;
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
