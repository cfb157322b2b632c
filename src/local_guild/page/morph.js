// Drawing again without making anew: what stays is the same element, so that a click, a focus or a
// choice that is under way is not lost with it.

import { HANDLERS, hear } from "./dom.js";

/** Set by others than those who draw; they look after it themselves. */
const kept = ["style", "tabindex"];

const key = (node) => node.dataset?.key ?? node.dataset?.id ?? node.dataset?.testid ?? node.id ?? "";

/** Whether one node can become the other. */
function alike(one, other) {
  return one.nodeName === other.nodeName && key(one) === key(other) && one.classList?.[0] === other.classList?.[0];
}

function attributes(node, next) {
  // What the element changes by itself, as whether it is unfolded.
  const own = [...kept, ...(next.dataset?.own ?? "").split(" ")];
  for (const { name } of [...node.attributes]) if (!own.includes(name) && !next.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of [...next.attributes]) if (!own.includes(name) && node.getAttribute(name) !== value) node.setAttribute(name, value);
  if (node.style.cssText !== next.style.cssText) node.style.cssText = next.style.cssText;
}

function handlers(node, next) {
  node[HANDLERS] = next[HANDLERS];
  for (const type of Object.keys(next[HANDLERS] ?? {})) node.addEventListener(type, hear);
}

/** Makes the children of a node what they are to be, out of those there are. */
export function children(node, wanted) {
  const left = [...node.childNodes];
  const order = wanted.map((next) => {
    const at = left.findIndex((it) => alike(it, next));
    return at < 0 ? next : morph(left.splice(at, 1)[0], next);
  });
  for (const it of left) it.remove();
  order.forEach((it, at) => { if (node.childNodes[at] !== it) node.insertBefore(it, node.childNodes[at] ?? null); });
}

/** Turns a node into another, and returns it; or the other, where they have nothing in common. */
export function morph(node, next) {
  if (node === next || !alike(node, next)) return next;
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.nodeValue !== next.nodeValue) node.nodeValue = next.nodeValue;
    return node;
  }
  const sent = node.nodeName === "SELECT" && node.disabled !== next.disabled;
  attributes(node, next);
  handlers(node, next);
  children(node, [...next.childNodes]);
  // A menu whose choice was sent offers its choice anew.
  if (sent) for (const option of node.options) option.selected = option.defaultSelected;
  return node;
}
