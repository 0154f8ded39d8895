import { LabIcon } from '@jupyterlab/ui-components';

/** A lattice of points with an index arrow. */
export const tcIcon = new LabIcon({
  name: 'tc-jupyter:lattice',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">' +
    '<circle cx="6" cy="8" r="2"/><circle cx="12" cy="8" r="2"/><circle cx="18" cy="8" r="2"/>' +
    '<circle cx="6" cy="14" r="2"/><circle cx="12" cy="14" r="2"/><circle cx="6" cy="20" r="2"/>' +
    '<path d="M4 2h13v-2l4 3-4 3v-2H4z"/></g></svg>'
});
export const inspectorIcon = new LabIcon({
  name: 'tc-jupyter:defs',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">' +
    '<circle cx="5" cy="5" r="2.5"/><rect x="10" y="4" width="11" height="2"/><circle cx="5" cy="12" r="2.5"/>' +
    '<rect x="10" y="11" width="11" height="2"/><circle cx="5" cy="19" r="2.5"/><rect x="10" y="18" width="11" height="2"/></g></svg>'
});
