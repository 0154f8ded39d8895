// Partitions: everything is in the HTML.
function enliven() {}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
