// Gradient: copy the text of the derived def.

function enliven(body, view) {
  body.querySelector('[data-copy=gradient]')?.addEventListener('click', async () => {
    view.say((await copyText(view.data.text ?? '')) ? '✓ copied' : '✗ the browser does not allow copying here');
  });
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
