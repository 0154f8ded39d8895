// Tuning: the page only shows what Python sends while a search runs.
function enliven() {}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
