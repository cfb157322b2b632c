// While somebody presses something, nothing moves under the pointer: what is to be drawn meanwhile waits
// until it is let go, and the click has reached what was pressed.

/** What is pressed in one place. Scroll bars and lists of the system do not tell when they are let go. */
const pressable = "a, button, label";

let down = false;
const waiting = new Set();

function release() {
  down = false;
  const all = [...waiting];
  waiting.clear();
  for (const draw of all) draw();
}

/** Draws now, or once nothing is pressed; what is asked for twice is drawn once. */
export function whenStill(draw) {
  if (down) waiting.add(draw);
  else draw();
}

addEventListener("pointerdown", (event) => { down = event.button === 0 && Boolean(event.target.closest?.(pressable)); }, true);
// By mouse the click comes at once; by touch a moment later; after a drag not at all.
addEventListener("pointerup", () => { if (down) setTimeout(release, 100); }, true);
addEventListener("click", () => { if (down) setTimeout(release); }, true);
addEventListener("pointercancel", release, true);
addEventListener("blur", release);
addEventListener("pointermove", (event) => { if (down && event.buttons === 0) release(); }, true);
