// The page as a whole: who, where, light or dark, and the line of events.

import { follow, Locked, session } from "./api.js";
import { filling, suggested, unanswered } from "./commands.js";
import { moved, startEdit, startReply } from "./composer.js";
import { openForm } from "./dialog.js";
import { icon, toast } from "./dom.js";
import { announce, open, refresh, show } from "./log.js";
import { drawPeople, drawSidebar } from "./sidebar.js";
import { apply, doing, listen, load, nameOf, placeName, touch, world } from "./store.js";
import { language, switchLanguage, word } from "./words.js";

const $ = (id) => document.getElementById(id);
const body = document.body;
let stop = () => {};

document.documentElement.lang = language;
for (const node of document.querySelectorAll("[data-word]")) node.textContent = word(node.dataset.word);
for (const node of document.querySelectorAll("[data-word-label]")) node.setAttribute("aria-label", word(node.dataset.wordLabel));
for (const [id, drawing, label] of [["theme", "moon", "theme"], ["menu", "menu", "menu"], ["attach", "plus", "attach"], ["send", "send", "send"], ["jump", "down", "jump"]]) {
  $(id).append(icon(drawing));
  $(id).title = word(label);
  $(id).setAttribute("aria-label", word(label));
}

$("language").append(word("other"));
$("language").title = word("language");
$("language").setAttribute("aria-label", `${word("other")} · ${word("language")}`);
$("language").addEventListener("click", switchLanguage);

const dark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = (name) => { document.documentElement.dataset.theme = name; };
setTheme(localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light"));
dark.addEventListener("change", () => { if (!localStorage.getItem("theme")) setTheme(dark.matches ? "dark" : "light"); });
$("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", next);
  setTheme(next);
});

/** The list of channels over the conversation, where there is no room beside it. */
function drawer(shown) {
  const was = body.classList.contains("drawer");
  body.classList.toggle("drawer", shown);
  $("menu").setAttribute("aria-expanded", String(shown));
  // What lies under it is out of reach, also for the keyboard.
  $("main").inert = shown;
  if (shown) $("sidebar").querySelector("[aria-current]")?.focus();
  else if (was) $("menu").focus();
}
$("menu").addEventListener("click", () => drawer(!body.classList.contains("drawer")));
$("scrim").addEventListener("click", () => drawer(false));
addEventListener("keydown", (event) => { if (event.key === "Escape" && body.classList.contains("drawer")) drawer(false); });
matchMedia("(max-width: 720px)").addEventListener("change", () => drawer(false));

// Whoever begins to write, writes to the channel on show.
addEventListener("keydown", (event) => {
  const plain = event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey;
  const busy = event.target.closest("input, textarea, select, dialog, .sidebar") || $("dialog").open || filling();
  if (plain && !busy && !body.classList.contains("drawer")) $("composer").focus();
});

function drawHead() {
  const channel = world.channels.get(world.current);
  if (!channel) return;
  // A channel stands in a category, which is no place to go to.
  const parent = channel.type >= 10 ? world.channels.get(channel.parent_id) : null;
  $("title").replaceChildren(icon(channel.type === 0 ? "hash" : channel.type === 1 ? "at" : "thread"),
    channel.type === 1 ? nameOf(channel.recipients[0]) : channel.name);
  $("topic").textContent = parent ? word("room") : channel.type === 1 ? doing(channel.recipients[0]) : channel.topic ?? "";
  $("parent").hidden = !parent;
  if (parent) {
    $("parent").href = `#${parent.id}`;
    $("parent").textContent = placeName(parent);
    $("parent").setAttribute("aria-label", `${word("from")} ${placeName(parent)}`);
  }
}

function drawTyping() {
  const now = Date.now();
  const names = [...world.typing.get(world.current) ?? []].filter(([, until]) => until > now).map(([id]) => nameOf(world.users.get(id) ?? { username: "?" }));
  const text = names.length === 0 ? "" : names.length === 1 ? word("typing1", names[0]) : names.length === 2 ? word("typing2", ...names) : word("typingMany");
  if ($("typing").textContent !== text) $("typing").textContent = text;
}

/** Shows the place that the address names. One that is not known yet is shown when it comes. */
function go() {
  const wanted = location.hash.slice(1);
  const first = [...world.channels.values()].filter((it) => it.type === 0).sort((a, b) => a.position - b.position)[0];
  const channel = world.channels.get(wanted) ?? world.channels.get(world.current) ?? first;
  if (!channel || channel.id === world.current) return;
  world.current = channel.id;
  moved(channel);
  drawHead();
  drawSidebar();
  drawTyping();
  drawer(false);
  open(channel.id).catch((error) => toast(String(error)));
}

/** Interactions under way, by id: the button that waits for them. */
const clicks = new Map();

listen((what, detail) => {
  switch (what) {
    case "log": refresh(detail); break;
    case "channels":
      drawSidebar();
      drawHead();
      // The place on show was removed, or the one asked for has come.
      if (world.current) go();
      break;
    case "people": drawPeople(speakAs); break;
    case "typing": if (detail === world.current) drawTyping(); break;
    case "reply": startReply(detail); break;
    case "edit": startEdit(detail); break;
    case "show": show(detail); break;
    case "dialog":
      // Another page of the same person may have asked for it.
      if (detail.session === session) openForm(detail.id, detail.data);
      break;
    case "choices": suggested(detail); break;
    case "said": announce(detail); break;
    case "failed": if (detail.session === session && !unanswered(detail.id)) toast(word("failed")); break;
    case "clicked":
      clicks.set(detail.interaction, detail.key);
      if (settled.delete(detail.interaction)) release(detail.interaction);
      break;
    default: break;
  }
});

/** Answers that came before the click's own response. */
const settled = new Set();

function release(id) {
  const key = clicks.get(id);
  if (!key) {
    settled.add(id);
    return;
  }
  clicks.delete(id);
  world.waiting.delete(key);
  touch("log", world.current);
}

const speakAs = (user) => start(user).catch((error) => toast(String(error)));

async function start(user) {
  stop();
  world.current = null;
  const position = await load(user);
  sessionStorage.setItem("user", world.me);
  $("guild-name").textContent = world.guild.name;
  drawPeople(speakAs);
  go();
  $("offline").hidden = true;
  stop = follow(world.me, position, {
    onevent: (event) => {
      apply(event);
      if (event.t === "INTERACTION_DONE" || event.t === "INTERACTION_FAILED") release(event.d.id);
    },
    onreset: () => restart(),
    onstatus: (well) => {
      $("offline").hidden = well;
      $("offline").textContent = word("offline");
      // It was chosen while nothing could be read.
      if (well && world.current && !world.logs.has(world.current)) {
        open(world.current).catch((error) => toast(String(error)));
      }
    },
    onlocked: locked,
  });
}

/** Nothing more is shown until the page is opened with its key. */
function locked(error) {
  $("offline").textContent = error.message;
  $("offline").hidden = false;
}

function restart() {
  const here = location.hash;
  start(world.me ?? "owner").then(() => { location.hash = here; }).catch((error) => (error instanceof Locked ? locked(error) : setTimeout(restart, 2000)));
}

addEventListener("hashchange", go);
setInterval(drawTyping, 2000);
start(sessionStorage.getItem("user") ?? "owner").catch(() => start("owner")).catch(locked);
