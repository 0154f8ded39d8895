// Benchmark: save the table and the charts as files made in the page.
function enliven(body, view) {
  const save = (name, type, text) => {
    const link = element('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  body.querySelector('[data-save=csv]')?.addEventListener('click', () => save('benchmark.csv', 'text/csv', view.data.csv ?? ''));
  body.querySelector('[data-save=svg]')?.addEventListener('click', () => {
    const chart = body.querySelector('svg[data-chart=distribution]').cloneNode(true);
    chart.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    save('benchmark.svg', 'image/svg+xml', chart.outerHTML);
  });
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
