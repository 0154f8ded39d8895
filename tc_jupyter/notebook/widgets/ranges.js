// Ranges: everything is in the HTML; the marks of the text are brought into view when an index is chosen.
function enliven(body) {
  body.querySelector('mark[data-span]')?.scrollIntoView?.({ block: 'nearest' });
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
