// The page as a whole: who, where, light or dark, and the line of events.

import { follow, post } from "./api.js";
import { moved, startEdit, startReply } from "./composer.js";
import { el, icon, toast } from "./dom.js";
import { open, refresh, show } from "./log.js";
import { drawPeople, drawSidebar } from "./sidebar.js";
import { apply, listen, load, nameOf, placeName, touch, world } from "./store.js";
import { language, word } from "./words.js";

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

const dark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = (name) => { document.documentElement.dataset.theme = name; };
setTheme(localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light"));
dark.addEventListener("change", () => { if (!localStorage.getItem("theme")) setTheme(dark.matches ? "dark" : "light"); });
$("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", next);
  setTheme(next);
});

function drawer(shown) {
  body.classList.toggle("drawer", shown);
  $("menu").setAttribute("aria-expanded", String(shown));
}
$("menu").addEventListener("click", () => drawer(!body.classList.contains("drawer")));
$("scrim").addEventListener("click", () => drawer(false));
addEventListener("keydown", (event) => { if (event.key === "Escape") drawer(false); });

function drawHead() {
  const channel = world.channels.get(world.current);
  if (!channel) return;
  const parent = world.channels.get(channel.parent_id);
  $("title").replaceChildren(icon(channel.type === 0 ? "hash" : channel.type === 1 ? "at" : "thread"),
    channel.type === 1 ? nameOf(channel.recipients[0]) : channel.name);
  $("topic").textContent = parent ? word("room") : channel.topic ?? "";
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
  const from = world.current;
  world.current = channel.id;
  moved(from, channel);
  drawHead();
  drawSidebar();
  drawTyping();
  drawer(false);
  open(channel.id).catch((error) => toast(String(error)));
}

function dialog(event) {
  const { data, id } = event;
  const inputs = data.data.components.flatMap((row) => row.components).map((it) =>
    el("label", {}, it.label, el(it.style === 2 ? "textarea" : "input", {
      name: it.custom_id, placeholder: it.placeholder, value: it.style === 2 ? undefined : it.value, required: it.required !== false, maxlength: it.max_length, rows: 4,
    }, it.style === 2 ? it.value ?? "" : "")));
  const form = el("form", {
    onsubmit: (submit) => {
      submit.preventDefault();
      const values = Object.fromEntries(new FormData(form));
      post("modal", { user: world.me, interaction: id, custom_id: data.data.custom_id, values }).catch((error) => toast(error.message));
      $("dialog").close();
    },
  }, el("h3", {}, data.data.title), inputs, el("div", { class: "row" },
    el("button", { type: "button", class: "button secondary", onclick: () => $("dialog").close() }, word("cancel")),
    el("button", { type: "submit", class: "button primary" }, word("submit"))));
  $("dialog").replaceChildren(form);
  $("dialog").showModal();
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
    case "typing": if (detail === world.current) drawTyping(); break;
    case "reply": startReply(detail); break;
    case "edit": startEdit(detail); break;
    case "show": show(detail); break;
    case "dialog": dialog({ id: detail.id, data: detail }); break;
    case "failed": toast(word("failed")); break;
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

async function start(user) {
  stop();
  world.current = null;
  const position = await load(user);
  sessionStorage.setItem("user", world.me);
  $("guild-name").textContent = world.guild.name;
  drawPeople((next) => start(next).catch((error) => toast(String(error))));
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
    },
  });
}

function restart() {
  const here = location.hash;
  start(world.me ?? "owner").then(() => { location.hash = here; }).catch(() => setTimeout(restart, 2000));
}

addEventListener("hashchange", go);
setInterval(drawTyping, 2000);
start(sessionStorage.getItem("user") ?? "owner").catch(() => start("owner")).catch((error) => toast(String(error)));
