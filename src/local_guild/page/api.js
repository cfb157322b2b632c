// Talking to the server: requests, and the line of events.

import { locale, word } from "./words.js";

/** A refusal, with the server's words. */
export class Refused extends Error {}

/** The page lacks its key, or has that of another guild. */
export class Locked extends Refused {}

// The key comes in the address that the terminal shows, and is kept for this address and port alone.
const opened = new URLSearchParams(location.search).get("key");
if (opened) {
  localStorage.setItem("key", opened);
  history.replaceState(null, "", location.pathname + location.hash);
}
const key = () => localStorage.getItem("key") ?? "";

async function ask(path, options) {
  const headers = { ...options.headers, "X-Page-Key": key() };
  const response = await fetch(`/_local/${path}`, { ...options, headers });
  const text = await response.text();
  const body = text ? JSON.parse(text) : null;
  if (response.status === 401) throw new Locked(word("locked"));
  if (!response.ok) {
    const first = firstError(body?.errors);
    throw new Refused(first ?? body?.message ?? `${response.status}`);
  }
  return body;
}

function firstError(errors) {
  if (!errors || typeof errors !== "object") return null;
  if (Array.isArray(errors._errors)) return errors._errors[0]?.message ?? null;
  for (const inner of Object.values(errors)) {
    const found = firstError(inner);
    if (found) return found;
  }
  return null;
}

export const get = (path) => ask(path, {});

/** The name of this one page among those that are open: what it asks for comes back to it alone. */
export const session = Array.from(crypto.getRandomValues(new Uint32Array(4)), (it) => it.toString(16)).join("");

/** What a message or a command is known by: sent once more with the same, it is the same one. */
export const nonce = () => Array.from(crypto.getRandomValues(new Uint32Array(3)), (it) => it.toString(36)).join("");

/** What people do with an app's commands, buttons and forms; it is told the language of the page. */
export const act = (path, body) => post(path, { ...body, locale, session });

export const post = (path, body) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const upload = (file) =>
  ask(`upload?filename=${encodeURIComponent(file.name || "pasted.png")}`, {
    method: "POST", headers: { "Content-Type": file.type || "application/octet-stream" }, body: file,
  });

// A browser has six connections to a server, and each page that follows events holds one. Where many are open,
// those that nobody looks at let go of theirs until somebody does.
const pages = new BroadcastChannel("pages");
const manyPages = 4;

async function areMany() {
  const locks = await navigator.locks?.query();
  return locks?.held.filter((it) => it.name.startsWith("page-")).length > manyPages;
}

/** Follows events from a position. Reconnects by itself; `onreset` when the picture is stale. */
export function follow(user, position, { onevent, onreset, onstatus, onlocked }) {
  let source = null;
  let letGo = () => {};
  let stopped = false;
  let retry = null;
  let at = position;
  const open = () => {
    clearTimeout(retry);
    source?.close();
    letGo();
    navigator.locks?.request(`page-${session}`, () => source && new Promise((done) => { letGo = done; }));
    pages.postMessage("opened");
    source = new EventSource(`/_local/events?user=${user}&after=${encodeURIComponent(at)}&key=${encodeURIComponent(key())}`);
    source.onopen = () => onstatus(true);
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.t === "RESET") {
        close();
        onreset();
        return;
      }
      if (message.lastEventId) at = message.lastEventId;
      onevent(event);
    };
    source.onerror = () => {
      onstatus(false);
      // A server that is gone for long makes the browser give up; then we try ourselves.
      if (source?.readyState !== EventSource.CLOSED || stopped) return;
      const failed = source;
      get(`state?user=${user}`).then(() => true, (error) => {
        if (error instanceof Locked) onlocked(error);
        return !(error instanceof Locked);
      }).then((goes) => { if (goes && !stopped && source === failed) retry = setTimeout(open, 1500); });
    };
  };
  const shut = () => {
    clearTimeout(retry);
    source?.close();
    source = null;
    letGo();
  };
  pages.onmessage = async () => {
    if (source && document.hidden && await areMany() && document.hidden) shut();
  };
  const look = () => {
    if (!document.hidden && !source && !stopped) open();
  };
  document.addEventListener("visibilitychange", look);
  const close = () => {
    stopped = true;
    pages.onmessage = null;
    document.removeEventListener("visibilitychange", look);
    shut();
  };
  open();
  return close;
}
