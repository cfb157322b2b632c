// Walking through the messages by keyboard: one stop for Tab, arrows from message to message, and the
// buttons of the message one stands on after it.

const list = document.getElementById("log");
let at = null;

const stops = () => [...list.querySelectorAll(":scope > .message")];

/** Makes one message the stop of the list; by default the one before, or the last. */
export function settleStop() {
  const all = stops();
  const here = all.find((it) => it.dataset.id === at) ?? all.at(-1);
  for (const node of all) {
    node.tabIndex = node === here ? 0 : -1;
    for (const button of node.querySelectorAll(".toolbar button")) button.tabIndex = node === here ? 0 : -1;
  }
}

list.addEventListener("focusin", (event) => {
  const node = event.target.closest(".message");
  if (!node || node.dataset.id === at) return;
  at = node.dataset.id;
  settleStop();
});

list.addEventListener("keydown", (event) => {
  if (!event.target.classList?.contains("message")) {
    // From a button of the message back to the message itself.
    if (event.key === "Escape") event.target.closest(".message")?.focus();
    return;
  }
  const all = stops();
  const now = all.indexOf(event.target);
  const next = { ArrowUp: now - 1, ArrowDown: now + 1, Home: 0, End: all.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  if (next === all.length) document.getElementById("composer").focus();
  else all[Math.max(next, 0)].focus();
});

/** What has the focus inside the list, so that it can have it again after its node was made anew. */
export function focused() {
  const node = document.activeElement?.closest?.(".message");
  if (!node || !list.contains(node)) return null;
  const inner = [...node.querySelectorAll("a, button, select, input, [tabindex]")];
  return { id: node.dataset.id, index: inner.indexOf(document.activeElement), node };
}

/** Gives the focus back. */
export function refocus(was, node) {
  const active = document.activeElement;
  // It has it still, unless that can have it no more.
  if (!was || !node || (node.contains(active) && !active.disabled)) return;
  const inner = [...node.querySelectorAll("a, button, select, input, [tabindex]")];
  const again = inner[was.index];
  (again && !again.disabled ? again : node).focus({ preventScroll: true });
}
