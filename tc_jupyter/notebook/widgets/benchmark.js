// Benchmark: save the table and the charts as files made in the page.
function enliven(body, view) {
  const save = (name, blob) => {
    const link = element('a', { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  body.querySelector('[data-save=csv]')?.addEventListener('click', () => save('benchmark.csv', new Blob([view.data.csv ?? ''], { type: 'text/csv' })));
  body.querySelector('[data-save=svg]')?.addEventListener('click', () => save('benchmark.svg', new Blob([charts(body).text], { type: 'image/svg+xml' })));
  body.querySelector('[data-save=png]')?.addEventListener('click', async () => {
    const blob = await picture(charts(body));
    if (blob === null) view.say('✗ the browser cannot draw this picture; save SVG works');
    else save('benchmark.png', blob);
  });
}

/** All charts below each other as one SVG that needs no page: the colours of the theme are written into it. */
function charts(body) {
  const colour = getComputedStyle(body).color, styles = getComputedStyle(document.body);
  const parts = [...body.querySelectorAll('svg[data-chart]')];
  let y = 8, width = 0, inner = '';
  for (const svg of parts) {
    const [, , w, h] = svg.getAttribute('viewBox').split(' ').map(Number);
    const copy = svg.cloneNode(true);
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    for (const [name, value] of Object.entries({ x: 8, y, width: w, height: h, style: `color:${colour}` })) copy.setAttribute(name, value);
    inner += copy.outerHTML;
    y += h + 12;
    width = Math.max(width, w + 16);
  }
  inner = inner.replace(/var\((--[\w-]+)\s*,\s*([^()]*|[^()]*\([^()]*\))\)/g, (_, name, other) => styles.getPropertyValue(name).trim() || other);
  const back = styles.getPropertyValue('--jp-layout-color1').trim() || '#fff';
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" font-family="sans-serif">`;
  return { width, height: y, text: `${head}<rect width="100%" height="100%" fill="${back}"/>${inner}</svg>` };
}

async function picture({ width, height, text }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  try { await image.decode(); } catch { return null; }
  const canvas = element('canvas', { width: 2 * width, height: 2 * height });
  canvas.getContext('2d').drawImage(image, 0, 0, 2 * width, 2 * height);
  return new Promise(resolve => canvas.toBlob(resolve, 'image/png'));
}

export default { render: ({ model, el }) => makeView(model, el, enliven) };
